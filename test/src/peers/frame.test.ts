import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { limits } from '../../../protocol/limits.ts';
import {
  type FrameKind,
  FrameReader,
  frameHeaderBytes,
  type PeerFrame,
  writeFrameHeader,
} from '../../../src/peers/frame.ts';

const anyFrame = fc.record(
  {
    kind: fc.integer({ min: 0, max: 8 }),
    place: fc.record({ first: fc.boolean(), last: fc.boolean() }, { noNullPrototype: true }),
    id: fc.oneof(fc.integer({ min: 0, max: 1_000 }), fc.maxSafeNat()),
    content: fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc
        .constantFrom(0, 1, limits.peerFrameBytesMax - 1, limits.peerFrameBytesMax)
        .map((n) => new Uint8Array(n)),
    ),
  },
  { noNullPrototype: true },
);

function encode({ kind, place, id, content }: PeerFrame): Buffer {
  const bytes = Buffer.alloc(frameHeaderBytes + content.byteLength);
  const at = writeFrameHeader(bytes, 0, { kind: kind as FrameKind, place, id, bytes: content.byteLength });
  bytes.set(content, at);
  return bytes;
}

test('frames come out as they went in, however their bytes are cut', () => {
  const cuts = fc.array(fc.oneof(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 100_000 })), {
    minLength: 1,
  });
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 6 }), cuts, (frames, lengths) => {
      const bytes = Buffer.concat(frames.map(encode));
      const came: PeerFrame[] = [];
      const reader = new FrameReader((frame) =>
        came.push({ ...frame, content: new Uint8Array(frame.content) }),
      );

      for (let at = 0, next = 0; at < bytes.byteLength; next++) {
        const length = lengths[next % lengths.length] ?? 1;
        reader.push(bytes.subarray(at, at + length));
        at += length;
      }

      assert.deepEqual(came, frames);
    }),
  );
});

test('a frame that says it is longer than any is refused by its header, before anything is held for it', () => {
  for (const cut of [1, 4, 11, 12, 100]) {
    const reader = new FrameReader(() => assert.fail('a frame came'));
    const header = Buffer.alloc(100);
    writeFrameHeader(header, 0, {
      kind: 1,
      place: { first: true, last: true },
      id: 1,
      bytes: limits.peerFrameBytesMax + 1,
    });

    const push = () => {
      for (let at = 0; at < header.byteLength; at += cut) reader.push(header.subarray(at, at + cut));
    };

    assert.throws(push, /^PeerProtocolError: a frame has 65537 bytes, and may have 65536$/);
  }
});
