import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { JsonBytes, scalarBytesMax } from '../../../actors/import/json-bytes.ts';
import { viewed } from '../../../src/base/viewed-bytes.ts';
import { seededRandom } from '../../support/segments.ts';

/** Each writer beside what JavaScript itself writes. */
function written(write: (json: JsonBytes) => void, bytes = scalarBytesMax): string {
  const json = new JsonBytes(new ArrayBuffer(bytes));
  write(json);
  return json.bytes.toString('utf8', 0, json.at);
}

const edges = [0, 1, 9, 10, 99, 2 ** 31 - 1, 2 ** 31, 999_999_999, 1e9, 1e9 + 1, 1e18, 2 ** 53 - 1];

describe('numbers are written as JavaScript writes them', () => {
  const random = seededRandom(1);

  test('whole numbers within 2^53 are written digit by digit', () => {
    const some = Array.from({ length: 20_000 }, () => Math.floor(random() * 2 ** (random() * 53)));
    for (const value of [...edges.filter(Number.isSafeInteger), ...some])
      for (const signed of value === 0 ? [0] : [value, -value])
        assert.equal(
          written((json) => json.integer(signed)),
          String(signed),
        );
  });

  test('whole numbers of 64 bits are written by their halves', () => {
    const some = Array.from(
      { length: 20_000 },
      () => (BigInt(Math.floor(random() * 2 ** 32)) << 32n) | BigInt(Math.floor(random() * 2 ** 32)),
    );
    const most = 2n ** 63n;
    for (const bits of [
      ...some,
      ...edges.map(BigInt),
      most,
      most - 1n,
      most + 1n,
      2n ** 64n - 1n,
      2n ** 32n,
    ]) {
      const value = BigInt.asIntN(64, bits);
      const [low, high] = [Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n))];
      assert.equal(
        written((json) => json.wideInteger(low, high)),
        String(value),
      );
    }
  });

  test('doubles keep their value, and whole ones get a fraction', () => {
    const few = Array.from({ length: 50_000 }, () => {
      const digits = Math.floor(random() * 8);
      return Math.round(random() * 10 ** (random() * 14)) / 10 ** digits;
    });
    const any = Array.from({ length: 20_000 }, () => (random() - 0.5) * 10 ** (random() * 600 - 300));
    const others = [
      0,
      -0,
      0.1 + 0.2,
      1e-6,
      1e-7,
      1e21,
      5e-324,
      Number.MAX_VALUE,
      1e9 - 0.0001,
      123456789.1235,
    ];
    for (const value of [...few, ...any, ...others, ...edges])
      for (const signed of [value, -value]) {
        const text = Object.is(signed, -0) ? '-0' : String(signed);
        const isWhole = Number.isInteger(signed) && !text.includes('e');
        assert.equal(
          written((json) => json.double(signed)),
          isWhole ? `${text}.0` : text,
        );
      }
  });

  test('decimals are imported with all of their digits', () => {
    for (let scale = 0; scale <= 9; scale++)
      for (let i = 0; i < 2_000; i++) {
        const value = Math.floor(random() * 2 ** (random() * 53)) - (i % 2) * 1_000;
        const digits = String(Math.abs(value)).padStart(scale + 1, '0');
        const cut = digits.length - scale;
        const expected = `${value < 0 ? '-' : ''}${digits.slice(0, cut)}.${digits.slice(cut) || '0'}`;
        assert.equal(
          written((json) => json.decimal(value, scale)),
          expected,
        );
      }
  });
});

test('strings are escaped as JSON.stringify does, and known by whether they are ASCII', () => {
  const random = seededRandom(2);
  const parts = ['a', 'tide', '"', '\\', '\n', '\u0000', '\u001f', '\u007f', 'é', '漢', '😀', '  ', '/'];
  for (let i = 0; i < 20_000; i++) {
    const text = Array.from(
      { length: Math.floor(random() * 12) },
      () => parts[Math.floor(random() * parts.length)],
    ).join('');
    const source = viewed(Buffer.from(`..${text}..`));
    let isAscii = false;
    const json = written((to) => {
      isAscii = to.string(source, 2, source.bytes.length - 2);
    }, 512);
    assert.equal(json, JSON.stringify(text));
    assert.equal(isAscii, /^[\0-\u007f]*$/u.test(text));
  }
});
