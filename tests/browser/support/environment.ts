/** What the Rust test that starts this suite hands over: variables of the environment, read in this one place. */

import { resolve } from 'node:path';

/** Where the program serves the studio's site, for example `http://localhost:41234`. */
export const site = new URL(required('ROWHOUSE_URL'));

/**
 * Where the hosts of `site` are, as `127.0.0.1:8443`, when the program under test speaks HTTPS for a domain that no
 * resolver knows. Then `https.spec.ts` runs, and nothing else.
 */
export const httpsAddress = process.env.ROWHOUSE_HTTPS_ADDRESS;

/** File with the output of `rowhouse routes --format json`. */
export const routesFile = required('ROWHOUSE_ROUTES');

/** Where a second program serves the same sites with React's development build. */
export const developmentSite = new URL(required('ROWHOUSE_DEV_UI_URL'));

/** The program itself, for tests that start one of their own. */
export const binary = required('ROWHOUSE_BINARY');

/** The top of the repository. */
export const repository = resolve(import.meta.dirname, '../../..');

function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`\`${name}\` is not set: \`cargo test\` starts the program and sets it`);
  return value;
}
