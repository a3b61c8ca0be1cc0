/** Builds the bundle for tests that read it, once per test file. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Module {
  file: string;
  imports: string[];
}

export interface Manifest {
  react: string;
  mode: string;
  runtime: Module;
  islands: Record<string, Module & { server: boolean; props: object }>;
}

export interface Bundle {
  manifest: Manifest;
  server: string;
  loader: string;
  console: string;
  /** Client files by name. */
  client: Map<string, Buffer>;
}

export function bundle(...flags: string[]): Bundle {
  const dir = mkdtempSync(join(tmpdir(), 'rowhouse-ui-'));
  try {
    execFileSync(process.execPath, ['build.mjs', '--out', dir, ...flags]);
    const names = readdirSync(join(dir, 'client')).sort();
    return {
      manifest: JSON.parse(readFileSync(join(dir, 'manifest.json'), 'utf8')),
      loader: readFileSync(join(dir, 'loader.js'), 'utf8'),
      console: readFileSync(join(dir, 'console.js'), 'utf8'),
      server: readFileSync(join(dir, 'server.js'), 'utf8'),
      client: new Map(names.map((name) => [name, readFileSync(join(dir, 'client', name))])),
    };
  } finally {
    rmSync(dir, { recursive: true });
  }
}
