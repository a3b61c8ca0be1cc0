/** Rules that every island keeps: what it may say, and what its server markup may hold. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createContext, runInContext } from 'node:vm';
import Value from 'typebox/value';
import { bundle } from './bundle.ts';
import { textsOf, wordsOf } from './said.ts';
import { entryFilter, samples } from './samples.ts';

/**
 * The server's render and the browser's first one differ with these, or the site's policy forbids them. One file may
 * name `Intl`: it gives it to islands only once they are hydrated, which a test below sees to.
 */
const FORBIDDEN =
  /\bIntl\b|\btoLocale\w*|\bDate\b|\bMath\s*\.\s*random\b|\bcrypto\b|dangerouslySetInnerHTML|\bstyle=\{/;

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => join(folder, file));
}

for (const file of [...sources('islands'), ...sources('shared')]) {
  test(`${file} renders the same everywhere`, () => {
    const lines = readFileSync(file, 'utf8').split('\n');
    const strays = lines.flatMap((line, index) => {
      const allowed = file === join('shared', 'language.ts') ? /\bIntl\b/g : /$^/;
      const [word] = FORBIDDEN.exec(line.replace(allowed, '')) ?? [];
      return word ? [`${file}:${index + 1}: \`${word}\` is not for islands, see README.md`] : [];
    });
    assert.deepEqual(strays, []);
  });
}

const { manifest, server } = bundle();
/** As bare as QuickJS is. */
const context = createContext({});
runInContext('delete globalThis.Intl; delete globalThis.console;', context);
runInContext(server, context);
/** What a browser has that QuickJS lacks, with a language that writes numbers and plurals its own way. */
const browser = createContext({ document: { documentElement: { lang: 'de' } } });
runInContext(server, browser);

test('every island has a sample', () => {
  assert.deepEqual(Object.keys(samples).sort(), Object.keys(manifest.islands).sort());
});

for (const [name, props] of Object.entries(samples)) {
  test(`the sample of ${name} fits its schema`, () => {
    const schema = manifest.islands[name]?.props ?? {};
    assert.deepEqual([...Value.Errors(schema, props)], []);
    assert.equal(Value.Check(schema, { ...props, unknown: 1 }), false);
  });

  test(`${name} takes all its words from its props`, () => {
    const schema = manifest.islands[name]?.props ?? {};
    assert.ok('labels' in props && typeof props.labels === 'object' && props.labels);
    for (const key of Object.keys(props.labels)) {
      assert.match(key, /^[a-z]+(_[a-z]+)*$/, 'as in the files of words');
      const labels: Record<string, unknown> = { ...props.labels, [key]: undefined };
      assert.equal(Value.Check(schema, JSON.parse(JSON.stringify({ ...props, labels }))), false, key);
    }
  });

  if (!manifest.islands[name]?.server) continue;

  test(`the markup of ${name} keeps the policy`, () => {
    const html: string = context.render(name, JSON.stringify(props), 'a-');
    assert.match(html, /^<\w/);
    assert.doesNotMatch(html, /\sstyle=|<script|<style|\son\w+=|javascript:|<link/);
    assert.equal(html, context.render(name, JSON.stringify(props), 'a-'));
    assert.doesNotMatch(context.renderStatic(name, JSON.stringify(props)), /<!-- -->/);
  });

  test(`${name} says nothing that its props do not`, () => {
    // A number stands for one of the props, a full stop ends one.
    const blank = (text: string) => text.replace(/\{[^}]*\}|\d+/g, '#').replace(/\.$/, '');
    const known = new Set(textsOf(props).map(blank));
    const said = wordsOf(context.renderStatic(name, JSON.stringify(props))).map(blank);
    assert.deepEqual(
      said.filter((word) => word !== '#' && !known.has(word)),
      [],
    );
  });
}

test('the language of the page does not change the first render', () => {
  for (const entries of [[['ux']], Array.from({ length: 1234 }, () => ['ux'])]) {
    const props = JSON.stringify({ ...entryFilter, entries });
    assert.equal(browser.render('EntryFilter', props, 'a-'), context.render('EntryFilter', props, 'a-'));
  }
});

test('an unknown island is named', () => {
  assert.throws(
    () => context.render('Heder', '{}', ''),
    /no island `Heder` renders on the server; .*`Header`/,
  );
});
