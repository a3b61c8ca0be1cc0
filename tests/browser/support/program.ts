/** Programs that a spec starts, each with its own folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from '@playwright/test';
import { binary } from './environment.ts';

/** A program: the process, the origin for visitors, and the origin for operators. */
type Program = [server: ChildProcess, origin: string, admin: string];

/** The logs of the programs of this worker. */
const logs = new Map<ChildProcess, string>();

/** Returns the end of each running program's log, for a failed test. */
export function lastLogged(): string[] {
  const running = [...logs].filter(([server]) => server.exitCode === null && server.signalCode === null);
  return running.map(([, log]) => log.slice(-4000));
}

/** Serves the tenants of a folder and waits until all pages are rendered. */
export function serve(folder: string, ...more: string[]): Promise<Program> {
  return start(folder, 'serve', '--admin', '127.0.0.1:0', ...more);
}

/** Runs any command that serves. */
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
  // On a busy machine, rendering may take longer than a request waits.
  const ready = async () => {
    const address = admin();
    if (address === undefined) return false;
    const response = await fetch(`http://${address}/readyz`);
    return response.ok && !(await response.text()).includes('pending:');
  };
  await expect.poll(ready, { message: 'a server with all pages', timeout: 80_000 }).toBe(true);
  return [server, origin, `http://${admin()}`];
}

/** Ends a program, and waits until it has written its state, so that its folder can be removed. */
export async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, 'exit');
  server.kill();
  await ended;
}

/**
 * Returns an unused port below those that the system assigns, so that no other program takes it by chance. Each worker
 * of Playwright has twenty ports of its own.
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
