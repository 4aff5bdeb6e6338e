import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TextInterner } from '../../../../actors/sql/intern/text-interner.ts';
import { oneTurn, type SqlTurns } from '../../../../actors/sql/interruption.ts';
import { Room } from '../../../../actors/sql/room.ts';

const megabyte = 1e6;

const textOf = (at: number) => Buffer.alloc(megabyte, `${at} `);

/** Turns that are over whenever they are looked at, and the time after so many of them. */
function shortTurns(turnsMax: number): SqlTurns & { readonly given: number } {
  let given = 0;
  return {
    due: () => true,
    async giveWay() {
      given++;
    },
    get timedOut() {
      return given >= turnsMax;
    },
    get given() {
      return given;
    },
  };
}

/** Holds texts until one more would have all of them copied. */
function fullInterner(): { readonly interner: TextInterner; readonly count: number } {
  const interner = new TextInterner(new Room(1_000));
  let count = 0;
  while (!interner.isLongToGrow(megabyte)) assert.equal(interner.number(textOf(count)), count++);
  return { interner, count };
}

test('large strings get their room in turns, and keep their numbers', async () => {
  const { interner, count } = fullInterner();
  const turns = shortTurns(Number.POSITIVE_INFINITY);

  await interner.growInTurns(megabyte, turns);

  assert.ok(turns.given > count, `${turns.given} turns for ${count} MB`);
  assert.equal(interner.isLongToGrow(megabyte), false);
  assert.equal(interner.number(textOf(count)), count);
  for (let at = 0; at <= count; at++) assert.equal(interner.number(textOf(at)), at);
  assert.equal(interner.count, count + 1);
});

test('room that is not made in time leaves all strings where they were', async () => {
  const { interner, count } = fullInterner();

  await interner.growInTurns(megabyte, shortTurns(3));

  assert.equal(interner.isLongToGrow(megabyte), true);
  for (let at = 0; at < count; at++) assert.equal(interner.number(textOf(at)), at);
});

test('few bytes are copied at once, in one turn', async () => {
  const interner = new TextInterner(new Room(1_000));
  interner.number(textOf(0));
  assert.equal(interner.isLongToGrow(10 * megabyte), false);

  await interner.growInTurns(10 * megabyte, oneTurn);

  assert.equal(interner.number(textOf(0)), 0);
});
