// What groups answer, step by step, as data: tests/scenarios. Where edgelog differs on purpose,
// scenarios.differs.jsonl has what it answers, and why; what cannot be asked of it is left out
// there by name. EDGELOG_SCENARIO=word runs those with it in their names,
// EDGELOG_SCENARIO_PATIENCE=4 makes all times four times as long.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { World } from './scenario-steps.mjs';
import { directory } from './support.mjs';

// Times of the scenarios, in milliseconds. On a slow machine all of them are so many times longer.
const TIMES = new Set(['ms', 'block_ms', 'min_idle', 'set_idle', '@ge', '@lt', '@between']);
const PATIENCE = Number(process.env.EDGELOG_SCENARIO_PATIENCE ?? 1);
const longer = (value) => (Array.isArray(value) ? value.map(longer) : value * PATIENCE);

const lines = (path) =>
  readFileSync(new URL(path, import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line, (key, value) => (TIMES.has(key) ? longer(value) : value)));

const scenarios = lines('../scenarios/redis-groups.jsonl');
const differs = new Map(lines('scenarios.differs.jsonl').map((one) => [one.name, one]));
const only = process.env.EDGELOG_SCENARIO ?? '';

// The codes that stand for an error of the scenarios.
const CODES = {
  NO_GROUP: ['NOT_FOUND', 'DELETED'],
  NO_STREAM: ['NOT_FOUND', 'DELETED'],
  BAD_ARG: ['INVALID'],
  BAD_ID: ['INVALID'],
};

const MATCHERS = {
  '@any': () => true,
  '@ge': (value, least) => value >= least,
  '@lt': (value, end) => value < end,
  '@between': (value, [least, most]) => least <= value && value <= most,
  '@oneof': (value, all) => all.some((one) => fits(one, value)),
};

// A value, or what a matcher stands for. Of an object only what is expected is looked at.
function fits(expected, value) {
  if (typeof expected !== 'object' || expected === null) return expected === value;
  const entries = Object.entries(expected);
  if (entries.some(([name]) => name.startsWith('@'))) {
    return entries.every(([name, argument]) => MATCHERS[name](value, argument));
  }
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(expected) && expected.length !== value.length) return false;
  return entries.every(([name, one]) => fits(one, value[name]));
}

// What is wrong with an answer; nothing: undefined.
function complaint(expected, { result, error, tookMs }) {
  const shown = JSON.stringify(error ?? result);
  if (expected.error !== undefined && !CODES[expected.error]?.includes(error)) {
    return `${shown} where ${expected.error} was expected`;
  }
  if ('result' in expected && (error !== undefined || !fits(expected.result, result))) {
    return `${shown} where ${JSON.stringify(expected.result)} was expected`;
  }
  if (expected.took_ms !== undefined && !fits(expected.took_ms, tookMs)) {
    return `it took ${tookMs} ms where ${JSON.stringify(expected.took_ms)} was expected`;
  }
  return undefined;
}

const byStep = (expected = []) => new Map(expected.map((one) => [one.step, one]));

// Takes all steps; gives what was not as it has to be.
async function run(world, { ops, expect }, difference) {
  const [written, own] = [byStep(expect), byStep(difference?.expect)];
  const complaints = [];
  let isAsWritten = true;
  for (const [step, operation] of ops.entries()) {
    if (difference?.without?.includes(step)) {
      isAsWritten = false;
      continue;
    }
    const answer = await world.step(operation);
    if (own.has(step) && written.has(step) && complaint(written.get(step), answer)) {
      isAsWritten = false;
    }
    const expected = own.get(step) ?? written.get(step);
    const wrong = expected && complaint(expected, answer);
    if (wrong) complaints.push(`step ${step}, ${JSON.stringify(operation)}: ${wrong}`);
  }
  if (difference && !difference.sometimes && isAsWritten) {
    complaints.push('nothing differs: take it off the list');
  }
  return complaints;
}

// Most of the time they wait, so several run at once.
test('scenarios', { concurrency: 4 }, async (t) => {
  const tests = scenarios
    .filter(({ name }) => name.includes(only))
    .map((scenario) => {
      const difference = differs.get(scenario.name);
      const skip = difference?.skip ? difference.why : false;
      return t.test(scenario.name, { skip }, async (t) => {
        const world = new World(join(directory(), 'log'));
        try {
          assert.deepEqual(await run(world, scenario, difference), []);
        } finally {
          await world.close();
        }
      });
    });
  await Promise.all(tests);
});

test('there are as many scenarios as there were, and the list names only what is there', () => {
  assert.equal(scenarios.length, 107);
  const names = new Set(scenarios.map(({ name }) => name));
  assert.equal(names.size, scenarios.length);
  assert.equal(differs.size, lines('scenarios.differs.jsonl').length);
  for (const { name, why } of differs.values()) assert.ok(names.has(name) && why, name);
});
