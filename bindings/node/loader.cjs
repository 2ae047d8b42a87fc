'use strict';

// Finds the native half for this machine: beside this file, or in a package of its own.

function target() {
  // The network part of a report can take seconds and is of no use here.
  process.report.excludeNetwork = true;
  const { glibcVersionRuntime } = process.report.getReport().header;
  const libc = glibcVersionRuntime ? 'gnu' : 'musl';
  return `${process.platform}-${process.arch}-${libc}${process.arch === 'arm' ? 'eabihf' : ''}`;
}

function load() {
  const name = `edgelog-${target()}`;
  const tried = [];
  for (const place of [`./${name}.node`, name]) {
    try {
      return require(place);
    } catch (error) {
      tried.push(`\n  ${place}: ${error.message.split('\n')[0]}`);
    }
  }
  throw new Error(`edgelog has no addon that works on this machine; tried:${tried.join('')}`);
}

module.exports = load();
