/** What the Rust test that starts this suite hands over: variables of the environment, read in this one place. */

/** Where the program serves the studio's site, for example `http://localhost:41234`. */
export const site = new URL(required('ROWHOUSE_URL'));

/** File with the output of `rowhouse routes --format json`. */
export const routesFile = required('ROWHOUSE_ROUTES');

/** Where a second program serves the same sites with React's development build. */
export const developmentSite = new URL(required('ROWHOUSE_DEV_UI_URL'));

function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`\`${name}\` is not set: \`cargo test\` starts the program and sets it`);
  return value;
}
