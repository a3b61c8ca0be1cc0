/**
 * Finds the islands: every folder `islands/<Name>/` with `index.tsx` (the component) and `props.ts` (its contract).
 *
 * `props.ts` exports `schema`, the JSON Schema of the props, against which the engine checks content. It exports
 * `server = false` if the component can only be rendered in the browser.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { BuildError } from './error.mjs';
import { checkKeywords } from './keywords.mjs';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** Returns the islands, sorted by name: `[{ name, source, schema, server }]`. */
export async function findIslands() {
  const names = readdirSync(join(root, 'islands'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  for (const name of names) {
    if (!/^[A-Z][A-Za-z0-9]*$/.test(name)) {
      throw new BuildError(
        `\`islands/${name}\` is not a valid island name: use letters and digits, and begin with a capital`,
      );
    }
    for (const file of ['index.tsx', 'props.ts']) {
      if (!existsSync(join(root, 'islands', name, file))) {
        throw new BuildError(
          `\`islands/${name}/${file}\` is missing: an island needs an index.tsx and a props.ts`,
        );
      }
    }
  }
  const contracts = await loadContracts(names);
  return names.map((name) => {
    const { schema, server = true } = contracts[name];
    if (schema?.type !== 'object' || schema.additionalProperties !== false) {
      throw new BuildError(
        `\`islands/${name}/props.ts\` must export \`schema\`, made by \`shape\` of shared/schema.ts`,
      );
    }
    const contract = plain(schema);
    checkKeywords(name, contract);
    return { name, source: `./islands/${name}/index.tsx`, schema: contract, server };
  });
}

/** Loads the `props.ts` files into this process. They are bundled in memory, so Node need not understand TypeScript. */
async function loadContracts(names) {
  const lines = names.map((name) => `export * as ${name} from './islands/${name}/props.ts';`);
  const { outputFiles } = await build({
    stdin: { contents: lines.join('\n'), resolveDir: root, sourcefile: 'contracts.ts' },
    absWorkingDir: root,
    bundle: true,
    format: 'esm',
    platform: 'node',
    write: false,
    logLevel: 'warning',
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);
}

/** Returns the plain JSON of a schema, without the library's private symbols, which are not enumerable. */
function plain(schema) {
  return JSON.parse(JSON.stringify(schema));
}
