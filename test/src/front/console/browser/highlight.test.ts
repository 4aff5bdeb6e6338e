import assert from 'node:assert/strict';
import { it } from 'node:test';
import { piecesOf } from '../../../../../src/front/console/browser/highlight.ts';

/** What matched in brackets. */
const shown = (line: string, match: string, anyCase = true) =>
  piecesOf(line, match, anyCase)
    .map(({ text, matched }) => (matched ? `[${text}]` : text))
    .join('');

it('a line is cut at every place that matches, in any case', () => {
  assert.equal(shown('Tide after tide: the TIDE', 'tide'), '[Tide] after [tide]: the [TIDE]');
  assert.equal(shown('Tide after tide', 'tide', false), 'Tide after [tide]');
  assert.equal(shown('ÄRGER ärger', 'ärger'), '[ÄRGER] [ärger]');
});

it('signs that mean something in a pattern mean themselves', () => {
  const signs = String.raw`a.*+?^$(){}[]|\/-#&~ b`;

  assert.equal(shown(`x ${signs} y`, signs), `x [${signs}] y`);
  assert.equal(shown('ab', 'a.'), 'ab');
});

it('a match of several lines is marked as far as its first', () => {
  assert.equal(shown('ends here', 'here\nand goes on', false), 'ends [here]');
  assert.equal(shown('begins', '\nbegins', false), '[begins]');
});

it('no match marks nothing, and nothing of the line is lost', () => {
  assert.equal(shown('a line', ''), 'a line');
  assert.equal(shown('', 'x'), '');
  assert.equal(shown('a <b>line</b>', '</B>'), 'a <b>line[</b>]');
});
