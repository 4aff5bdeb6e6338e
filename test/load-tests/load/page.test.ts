import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { reportPage } from '../../../load-tests/load/page.ts';
import {
  apart,
  linearScale,
  logScale,
  roundStep,
  shortNumber,
  thinned,
} from '../../../load-tests/load/plots.ts';
import { scenarios } from '../../../load-tests/load/scenarios.ts';
import { loadResult } from '../../support/load-results.ts';

const none = { full: {}, quick: {} };
const all = scenarios.map(({ name, about }) => loadResult(name, { about }));

describe('the report page', () => {
  const page = reportPage(all, none);

  it('has a section and a line of the table for every scenario', () => {
    for (const { name } of scenarios) {
      assert.equal(page.split(`<section id="${name}">`).length, 2, name);
      assert.equal(page.split(`<a href="#${name}">`).length, 2, name);
    }
  });

  it('needs nothing but itself', () => {
    assert.doesNotMatch(page, /https?:|<script|<link|<img|<iframe|\bsrc=|@import|url\(/i);
  });

  it('has colours for light and for dark', () => {
    assert.match(page, /color-scheme: light dark/);
    assert.match(page, /@media \(prefers-color-scheme: dark\)/);
  });

  it('draws throughput, latency over rate, steps and time, and memory', () => {
    for (const label of [
      'throughput of reads',
      'latency of reads',
      'latency of first reads',
      'memory over time',
    ])
      assert.ok(page.includes(`aria-label="${label}"`), label);
    assert.doesNotMatch(page, /NaN|Infinity|undefined/);
  });

  it('says what machine each result is of, once, and what a request took of its processor', () => {
    const machine = { machine: '2 × "Chip", 24 GiB, linux 6.1', node: 'v20.20.2', commit: '4567def' };

    const shown = reportPage([loadResult('soak'), loadResult('filters', { machine })], none);

    assert.match(shown, /Node v20\.20\.2; commits 0123abc, 4567def</);
    assert.equal(shown.split('24 GiB').length, 2);
    assert.match(shown, /<td class="number">51 µs<\/td>/);
  });

  it('shows texts of results as text', () => {
    const shown = reportPage([loadResult('soak', { failure: '<b>"ended" & gone' })], none);

    assert.ok(shown.includes('Reads &amp; searches of &lt;people&gt;.'));
    assert.ok(shown.includes('&lt;b&gt;&quot;ended&quot; &amp; gone'));
    assert.ok(shown.includes('ended early'));
  });

  it('says of a quick run that it is one, and of a missed bar that it was missed', () => {
    const missed = { name: 'requests that failed', value: '2', bar: '0', ok: false };

    const shown = reportPage([loadResult('soak', { isQuick: true, figures: [missed] })], none);

    assert.match(shown, /A smoke run/);
    assert.match(shown, /class="missed">missed/);
    assert.doesNotMatch(page, /A smoke run|class="missed"/);
  });

  it('says where the generator was the bottleneck', () => {
    assert.match(page, /against the bare one autocannon itself was the bottleneck/);
  });

  it('is made of a result that ended before it found anything', () => {
    const empty = { throughput: [], curves: [], memory: [], figures: [], ratios: [], failure: 'ended' };

    assert.doesNotMatch(reportPage([loadResult('soak', empty)], none), /NaN|Infinity|undefined/);
  });

  it('is the same for the same results', () => assert.equal(reportPage(all, none), page));
});

describe('plots', () => {
  it('steps are 1, 2 or 5 times a power of ten', () => {
    assert.deepEqual([0.013, 1, 3, 6, 70].map(roundStep), [0.02, 1, 5, 10, 100]);
  });

  it('a linear scale ends at a round number above the largest value', () => {
    const scale = linearScale(930);

    assert.deepEqual(scale.ticks, [0, 500, 1_000]);
    assert.equal(scale.at(500), 0.5);
  });

  it('a logarithmic scale spans whole powers of ten', () => {
    const scale = logScale(0.4, 90);

    assert.deepEqual(scale.ticks, [0.1, 1, 10, 100]);
    assert.ok(Math.abs(scale.at(10) - 2 / 3) < 1e-9);
  });

  it('names that would lie on each other are moved apart, in their order', () => {
    assert.deepEqual(apart([50, 10, 12], 14), [50, 10, 24]);
  });

  it('numbers are short', () => {
    assert.deepEqual([0.1234, 5.678, 432, 1_234, 45_678].map(shortNumber), [
      '0.12',
      '5.7',
      '432',
      '1,234',
      '45.7 k',
    ]);
  });

  it('what is thinned keeps its last value', () => {
    assert.deepEqual(thinned([1, 2, 3, 4, 5, 6], 3), [1, 3, 5, 6]);
  });
});
