// What the README shows does what the README says.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { directory, home, installed, runFile } from './support.mjs';

const readme = readFileSync(join(installed, 'README.md'), 'utf8');
const samples = [...readme.matchAll(/```js\n(.*?)```(?:(?!```).)*?```text\n(.*?)```/gs)];

test('every sample has its output beside it', () => {
  assert.equal(samples.length, readme.match(/```js\n/g).length);
  assert.ok(samples.length >= 5);
});

for (const [i, [, source, output]] of samples.entries()) {
  test(`sample ${i + 1} of the README`, async (t) => {
    const file = join(home, `sample-${i + 1}.mjs`);
    writeFileSync(file, source);
    const result = await runFile(process.execPath, [file], { cwd: directory() });
    assert.equal(result.stderr, '');
    // Lines end where their text ends.
    assert.equal(result.stdout.replace(/ +$/gm, ''), output);
    assert.equal(result.code, 0);
  });
}
