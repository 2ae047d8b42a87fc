// The declarations: strict TypeScript accepts the right uses and finds the wrong ones, and what
// is declared exists.

import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { edgelog, home, installed, openLog, runFile } from './support.mjs';

const source = fileURLToPath(new URL('../../bindings/node', import.meta.url));
const tsc = join(source, 'node_modules/typescript/bin/tsc');

// Sources beside the installed package, so that they import that one.
async function check(name, files = {}) {
  const folder = join(home, name);
  mkdirSync(folder, { recursive: true });
  cpSync(join(source, 'types'), folder, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  const config = JSON.parse(readFileSync(join(folder, 'tsconfig.json')));
  config.compilerOptions.typeRoots = [join(source, 'node_modules/@types')];
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  if (!existsSync(join(home, 'node_modules/@types'))) {
    cpSync(join(source, 'node_modules/@types'), join(home, 'node_modules/@types'), {
      recursive: true,
    });
    const undici = join(source, 'node_modules/undici-types');
    if (existsSync(undici))
      cpSync(undici, join(home, 'node_modules/undici-types'), { recursive: true });
  }
  return runFile(process.execPath, [tsc, '--project', folder], { timeoutMs: 120_000 });
}

test('tsc --strict accepts the sample and finds the mistakes', async () => {
  const result = await check('types');
  assert.equal(result.stdout + result.stderr, '');
  assert.equal(result.code, 0);
});

test('tsc would tell', async () => {
  const result = await check('wrong-types', {
    'wrong.mts': `import { open } from 'edgelog'; export const log: number = await open('x');`,
  });
  assert.match(result.stdout, /wrong\.mts.*TS2322/);
  assert.notEqual(result.code, 0);
});

// Names that index.d.ts declares in `class Name { ... }`.
function declared(name) {
  const text = readFileSync(join(installed, 'index.d.ts'), 'utf8');
  const body = text.match(new RegExp(`export class ${name}[^{]*\\{(.*?)\\n\\}`, 's'))[1];
  return [...body.matchAll(/^ {2}(?:readonly )?(\w+)[(:?]/gm)].map(([, member]) => member);
}

test('what is declared exists, and what exists is declared', async (t) => {
  const log = await openLog(t);
  const topic = await log.topic('t');
  const group = await topic.group('g');
  const handles = {
    Log: log,
    Topic: topic,
    Reader: await topic.reader(),
    Group: group,
    Consumer: await group.consumer('c'),
  };
  for (const [name, handle] of Object.entries(handles)) {
    const members = new Set(declared(name).filter((member) => member !== 'constructor'));
    assert.ok(members.size > 5);
    for (const member of members) assert.ok(member in handle, `${name}.${member}`);
    for (const member of Object.getOwnPropertyNames(edgelog[name].prototype)) {
      if (member !== 'constructor') assert.ok(members.has(member), `${name}.${member}`);
    }
  }
});

test('prettier agrees', async () => {
  const prettier = join(source, 'node_modules/prettier/bin/prettier.cjs');
  const tests = fileURLToPath(new URL('.', import.meta.url));
  for (const folder of [source, tests]) {
    const args = [prettier, '--config', join(source, '.prettierrc.json'), '--check', '.'];
    const result = await runFile(process.execPath, args, { cwd: folder });
    assert.equal(result.code, 0, result.stderr);
  }
});
