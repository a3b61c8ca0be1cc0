/** A program of a spec's own, on a folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from '@playwright/test';
import { binary } from './environment.ts';

/** What runs: the process, the origin that it answers visitors at, and the one for operators. */
type Program = [server: ChildProcess, origin: string, admin: string];

/** What the programs of this worker have logged. */
const logs = new Map<ChildProcess, string>();

/** The end of what each program that runs has logged, for a test that fails. */
export function lastLogged(): string[] {
  const running = [...logs].filter(([server]) => server.exitCode === null && server.signalCode === null);
  return running.map(([, log]) => log.slice(-4000));
}

/** Serves the tenants of a folder and waits until all pages are rendered. */
export function serve(folder: string, ...more: string[]): Promise<Program> {
  return start(folder, 'serve', '--admin', '127.0.0.1:0', ...more);
}

/** The same with any command that serves. */
export async function start(folder: string, ...command: string[]): Promise<Program> {
  const port = await reservedPort();
  const origin = `http://localhost:${port}`;
  const flags = ['--listen', `127.0.0.1:${port}`, '--origin', origin];
  const server = spawn(binary, [...command, ...flags], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  server.stderr.on('data', (part: Buffer) => {
    logs.set(server, (logs.get(server) ?? '') + part.toString());
  });
  const admin = () => /"admin":"([^"]+)"/.exec(logs.get(server) ?? '')?.[1];
  // On a busy machine pages may take longer to render than a request waits.
  const ready = async () => {
    const address = admin();
    if (address === undefined) return false;
    const response = await fetch(`http://${address}/readyz`);
    return response.ok && !(await response.text()).includes('pending:');
  };
  await expect.poll(ready, { message: 'a server with all pages', timeout: 80_000 }).toBe(true);
  return [server, origin, `http://${admin()}`];
}

/** Ends a program, and waits until it has written its state: its folder can be removed then. */
export async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, 'exit');
  server.kill();
  await ended;
}

/**
 * A port that nobody listens on, below those that the system gives out by itself, so that nobody gets it by chance
 * before the program takes it. Each worker of Playwright has twenty of its own.
 */
async function reservedPort(): Promise<number> {
  const first = 9000 + test.info().parallelIndex * 20;
  for (let port = first; port < first + 20; port += 1) {
    const listener = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      listener.once('error', () => resolve(false));
      listener.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (isFree) {
      await new Promise((resolve) => listener.close(resolve));
      return port;
    }
  }
  throw new Error(`no port is free from ${first} on`);
}
