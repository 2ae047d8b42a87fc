// The package as it is installed: what is in it, both ways to import it, what it exports.

import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

import {
  directory,
  edgelog,
  home,
  installed,
  mode,
  require,
  runFile,
  runModule,
} from './support.mjs';

const NAMES = [
  'Compaction',
  'Consumer',
  'EdgelogError',
  'Group',
  'Log',
  'Reader',
  'Topic',
  'key',
  'open',
  'openSync',
  'partitionOf',
];

// The addon is in the package itself, or in one that npm chose for this machine.
const chosen = readdirSync(join(home, 'node_modules')).find((name) => /^edgelog-linux-/.test(name));
const addonFolder = chosen === undefined ? installed : join(home, 'node_modules', chosen);

test('CommonJS and ES module give the same classes', async () => {
  const module = await import(pathToFileURL(join(installed, 'index.mjs')));
  assert.deepEqual(Object.keys(module).sort(), [...NAMES, 'version'].sort());
  assert.deepEqual(Object.keys(edgelog).sort(), [...NAMES, 'version'].sort());
  for (const name of NAMES) assert.equal(module[name], edgelog[name], name);
});

test('both are found by name', async (t) => {
  const result = await runModule(
    t,
    `import { createRequire } from 'node:module';
     import { open } from 'edgelog';
     console.log(open === createRequire(import.meta.url)('edgelog').open);`,
  );
  assert.equal(result.stdout, 'true\n', result.stderr);
});

test('the package holds what it needs and nothing else', () => {
  const filesIn = (folder) =>
    readdirSync(folder, { recursive: true })
      .map(String)
      .filter((name) => !name.startsWith('lib') && !name.startsWith('node_modules'))
      .map((name) => name.replace(/^edgelog-.*\.node$/, 'ADDON'))
      .sort();
  if (chosen !== undefined) assert.deepEqual(filesIn(addonFolder), ['ADDON', 'package.json']);
  assert.deepEqual(filesIn(installed), [
    ...(chosen === undefined ? ['ADDON'] : []),
    'README.md',
    'index.cjs',
    'index.d.mts',
    'index.d.ts',
    'index.mjs',
    'loader.cjs',
    'package.json',
  ]);
});

test('the version is that of the package', () => {
  assert.equal(edgelog.version, require('edgelog/package.json').version);
});

test('the addon exports nothing but the entry point', async (t) => {
  const addon = readdirSync(addonFolder).find((name) => name.endsWith('.node'));
  const nm = await runFile('nm', ['-D', '--defined-only', join(addonFolder, addon)]).catch(
    () => null,
  );
  if (nm === null) return t.skip('there is no nm');
  const names = nm.stdout
    .trim()
    .split('\n')
    .map((line) => line.split(' ').at(-1));
  assert.deepEqual(names, ['napi_register_module_v1']);
});

test('the addon takes the engine from where its mode says', async (t) => {
  const addon = readdirSync(addonFolder).find((name) => name.endsWith('.node'));
  const bytes = readFileSync(join(addonFolder, addon), 'latin1');
  assert.equal(bytes.includes('libedgelog.so.0'), mode === 'linked');
});

test('the loader says what it tried', async (t) => {
  const path = directory();
  cpSync(installed, path, { recursive: true });
  for (const name of readdirSync(path)) if (name.endsWith('.node')) rmSync(join(path, name));
  assert.throws(
    () => require(join(path, 'index.cjs')),
    ({ message }) => {
      assert.match(message, /edgelog has no addon that works on this machine; tried:/);
      assert.match(message, /\.\/edgelog-linux-\w+-\w+\.node: Cannot find module/);
      assert.match(message, / edgelog-linux-\w+-\w+: Cannot find module/);
      return true;
    },
  );
});

test('handles are opened, not made', () => {
  for (const Type of [edgelog.Log, edgelog.Topic, edgelog.Reader]) {
    assert.throws(() => new Type(), { code: 'INVALID' });
    assert.throws(() => new Type({}), { code: 'INVALID' });
  }
});
