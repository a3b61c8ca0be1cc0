/** Rules for every island: its UI strings and its server markup. */
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
 * These make the server's render differ from the browser's first one, or the site's policy forbids them. One file
 * may name `Intl`: islands get it only once they are hydrated, which a test below checks.
 */
const FORBIDDEN =
  /\bIntl\b|\btoLocale\w*|\bDate\b|\bMath\s*\.\s*random\b|\bcrypto\b|dangerouslySetInnerHTML|\bstyle=\{/;

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => join(folder, file));
}

for (const file of [...sources('islands'), ...sources('shared')]) {
  test(`${file} renders the same on server and browser`, () => {
    const lines = readFileSync(file, 'utf8').split('\n');
    const strays = lines.flatMap((line, index) => {
      const allowed = file === join('shared', 'language.ts') ? /\bIntl\b/g : /$^/;
      const [word] = FORBIDDEN.exec(line.replace(allowed, '')) ?? [];
      return word ? [`${file}:${index + 1}: \`${word}\` must not be used in islands, see README.md`] : [];
    });
    assert.deepEqual(strays, []);
  });
}

const { manifest, server } = bundle();
/** A context as bare as QuickJS. */
const context = createContext({});
runInContext('delete globalThis.Intl; delete globalThis.console;', context);
runInContext(server, context);
/**
 * A context with what a browser has and QuickJS lacks, and with a language that formats numbers and plurals
 * differently.
 */
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

  test(`${name} takes all UI strings from its props`, () => {
    const schema = manifest.islands[name]?.props ?? {};
    assert.ok('labels' in props && typeof props.labels === 'object' && props.labels);
    for (const key of Object.keys(props.labels)) {
      assert.match(key, /^[a-z]+(_[a-z]+)*$/, 'as in the files of UI strings');
      const labels: Record<string, unknown> = { ...props.labels, [key]: undefined };
      assert.equal(Value.Check(schema, JSON.parse(JSON.stringify({ ...props, labels }))), false, key);
    }
  });

  if (!manifest.islands[name]?.server) continue;

  test(`the markup of ${name} obeys the policy`, () => {
    const html: string = context.render(name, JSON.stringify(props), 'a-');
    assert.match(html, /^<\w/);
    assert.doesNotMatch(html, /\sstyle=|<script|<style|\son\w+=|javascript:|<link/);
    assert.equal(html, context.render(name, JSON.stringify(props), 'a-'));
    assert.doesNotMatch(context.renderStatic(name, JSON.stringify(props)), /<!-- -->/);
  });

  test(`${name} shows only texts of its props`, () => {
    // A number may stand for one of the props, and a full stop may follow a text.
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
