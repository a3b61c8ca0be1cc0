/** The variables that the Rust test sets for this suite, all read in this file. */

import { resolve } from 'node:path';

/** The URL of the studio's site, for example `http://localhost:41234`. */
export const site = new URL(required('ROWHOUSE_URL'));

/**
 * The address of the hosts of `site`, such as `127.0.0.1:8443`, if the program under test speaks HTTPS for a domain
 * that no resolver knows. Then only `https.spec.ts` runs.
 */
export const httpsAddress = process.env.ROWHOUSE_HTTPS_ADDRESS;

/** The file with the output of `rowhouse routes --format json`. */
export const routesFile = required('ROWHOUSE_ROUTES');

/** The URL of a second program with the same sites and React's development build. */
export const developmentSite = new URL(required('ROWHOUSE_DEV_UI_URL'));

/** The program itself, for tests that start their own. */
export const binary = required('ROWHOUSE_BINARY');

/** The top folder of the repository. */
export const repository = resolve(import.meta.dirname, '../../..');

function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`\`${name}\` is not set: \`cargo test\` starts the program and sets it`);
  return value;
}
