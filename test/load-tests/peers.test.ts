import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { missingPrograms } from '../../load-tests/outside-programs.ts';
import { askPeer } from '../../load-tests/peers/ask-peers.ts';
import { duckdb } from '../../load-tests/peers/duckdb.ts';
import { NotHere, type Peer, questionKinds } from '../../load-tests/peers/peer.ts';
import { makePeerCorpus, type PeerCorpus } from '../../load-tests/peers/peer-corpus.ts';
import {
  type PeersResult,
  peersFormat,
  peersSection,
  peersTable,
} from '../../load-tests/peers/peers-table.ts';
import { ripgrep } from '../../load-tests/peers/ripgrep.ts';

describe('programs that are asked beside ours', () => {
  let corpus: PeerCorpus;
  before(async () => {
    corpus = await makePeerCorpus(3_000);
  });

  it('are asked questions of every kind, each of which some rows answer and not all', () => {
    assert.deepEqual(new Set(corpus.questions.map(({ kind }) => kind)), new Set(Object.keys(questionKinds)));
    for (const { expected } of corpus.questions)
      if (typeof expected === 'number') assert.ok(expected < corpus.rows.length / 10, String(expected));
    const counts = corpus.questions.flatMap(({ expected }) =>
      typeof expected === 'number' ? [expected] : [],
    );
    assert.ok(counts.filter((count) => count > 0).length > counts.length / 2, String(counts));
  });

  it('answer what is true', async () => {
    const report = await askPeer(duckdb, corpus, 1);
    assert.deepEqual([report.skipped, report.wrong, report.recall], [null, [], 1]);
    assert.deepEqual(Object.keys(report.medianMs), Object.keys(questionKinds));
  });

  it('answer what is true, a process for each question', {
    skip: missingPrograms('rg').length > 0 && 'there is no rg',
  }, async () => {
    const report = await askPeer(ripgrep, corpus, 1);
    assert.deepEqual([report.skipped, report.wrong, report.recall], [null, [], null]);
    assert.deepEqual(Object.keys(report.medianMs), ['rare', 'word', 'regex']);
  });

  it('have their wrong answers told, and are ended all the same', async () => {
    let closed = 0;
    const liar: Peer = {
      name: 'Liar',
      about: '',
      open: async () => ({
        version: '1',
        kinds: ['rare'],
        ask: async () => 17,
        close: async () => void closed++,
      }),
    };
    const { wrong } = await askPeer(liar, corpus, 1);
    assert.equal(wrong.length, 5);
    assert.match(wrong[0] ?? '', /^rare [0-9a-f]+: 17, not 1$/);
    assert.equal(closed, 1);
  });

  it('are skipped with a sentence where they can’t be had, and any other failure ends the run', async () => {
    const failing = (error: Error): Peer => ({ name: 'Away', about: '', open: () => Promise.reject(error) });
    const report = await askPeer(failing(new NotHere('it is <away>')), corpus, 1);
    assert.equal(report.skipped, 'it is <away>');
    await assert.rejects(askPeer(failing(new Error('broken')), corpus, 1), /broken/);
    const machine = { machine: 'm', node: 'n', commit: 'c' };
    const result: PeersResult = {
      format: peersFormat,
      began: '2026-11-23T10:00:00.000Z',
      machine,
      rows: 3_000,
      isQuick: false,
      reports: [report, { ...report, name: 'Here', skipped: null, medianMs: { rare: 1.234 } }],
    };
    assert.match(peersSection(result), /Away was skipped: it is &lt;away&gt;/);
    assert.match(peersSection(result), /<td class="number">1\.23 ms<\/td>/);
    assert.match(peersTable(result).join('\n'), /Here\n/);
  });
});
