/**
 * Numbers, 0, 1, 2 …, for distinct pairs of numbers, in the order in which they come first. A first number finds the first pair that it came
 * with by itself; its others are found by open addressing, in parts that grow one by one.
 *
 * It takes no memory by itself: where it needs more it stops, and says how much (`wantedBytes`). Who holds the account then calls `grow`.
 */

/** How many pairs are looked at in one call, at most. */
export const pairsMax: i32 = 16_384;
/** Address of the first numbers, which are replaced by the numbers of the pairs. */
export const firstsAddress: usize = memory.data(pairsMax * 4, 16);
/** Address of the second numbers. */
export const secondsAddress: usize = memory.data(pairsMax * 4, 16);

/** What is kept by first number, and by number of a pair, lies in chunks of so many entries of 8 bytes. */
const chunkBits: u32 = 13;
const chunkMask: u32 = (1 << chunkBits) - 1;
const chunkBytes: usize = 8 << chunkBits;
/** Chunks of each kind, at most: more than a table has memory for. */
const chunksMax: u32 = 16_384;

/** Addresses of chunks by first number: the second of its first pair, and that pair's number plus one, 0 where there is none. */
const directs: usize = memory.data(chunksMax * 4, 16);
/** Addresses of chunks by number: a pair's first and second number. */
const pairs: usize = memory.data(chunksMax * 4, 16);

/** What pairs are multiplied by: an odd number, and who does not know it can't foresee the upper half of a product. */
let hashFactor: u64 = 1;
/** Highest bits of a hash, which choose one of the parts of the table. */
const partBits: u32 = 6;
const partCount: u32 = 1 << partBits;
/** Bytes of a slot: first, second, number plus one or 0 where it is free, nothing. All of a look-up lies in one line of the cache. */
const slotBytes: usize = 16;
const slotsFirst: usize = 64;
/** The parts: address, length in bytes, slots that are taken, slots that may be. */
const parts: usize = memory.data(partCount * 16, 16);
/** Memory that is free again, by the power of two that is its length: the first of a list whose links lie in what is free. */
const free: usize = memory.data(32 * 4, 16);

/** Where a table's memory ends: sums of its addresses and lengths never leave 32 bits. */
const memoryMax: usize = 0x4000_0000;
/** Where memory begins that nothing has, and how far something was ever written. */
let heapEnd: usize = 0;
let written: usize = 0;
let directCount: u32 = 0;
let pairChunkCount: u32 = 0;
let pairCount: u32 = 0;

const wantsDirect: i32 = 1;
const wantsPairs: i32 = 2;
const wantsSlots: i32 = 3;
let wanted: i32 = 0;
let wantedIndex: u32 = 0;

/** Chooses the hashes of an empty table, by 64 bits of chance. */
export function chooseHashes(low: u32, high: u32): void {
  hashFactor = ((<u64>high) << 32) | (low | 1);
}

/** Answers how many pairs have a number. */
export function count(): u32 {
  return pairCount;
}

/** Answers how many bytes the table takes. */
export function bytes(): usize {
  return heapEnd - __heap_base;
}

/** Empties the table. Answers whether there was memory for its first slots. */
export function reset(): bool {
  memory.fill(directs, 0, (<usize>directCount) << 2);
  memory.fill(pairs, 0, (<usize>pairChunkCount) << 2);
  memory.fill(free, 0, 32 * 4);
  heapEnd = __heap_base;
  if (written < heapEnd) written = heapEnd;
  directCount = 0;
  pairChunkCount = 0;
  pairCount = 0;
  for (let part: u32 = 0; part < partCount; part++) {
    const address = allocate(slotsFirst * slotBytes);
    if (address === 0) return false;
    setPart(part, address, slotsFirst * slotBytes);
  }
  return true;
}

function setPart(part: u32, address: usize, length: usize): void {
  const entry = parts + (part << 4);
  const slots = length / slotBytes;
  store<usize>(entry, address);
  store<usize>(entry, length, 4);
  store<u32>(entry, 0, 8);
  // 0.5 to 0.7: parts fill alike, and each is grown at another time.
  store<u32>(entry, <u32>((slots * (320 + 2 * part)) / 640), 12);
}

/**
 * Replaces first numbers, from place `from` to before `end`, by the numbers of their pairs. Answers `end`, or the place that more memory is
 * needed for.
 */
export function internAll(from: i32, end: i32): i32 {
  for (let i = from; i < end; i++) {
    const place = firstsAddress + ((<usize>i) << 2);
    const first = load<u32>(place);
    const second = load<u32>(place + (secondsAddress - firstsAddress));
    if (first >> chunkBits >= chunksMax) return want(wantsDirect, chunksMax, i);
    const chunk = load<usize>(directs + ((first >> chunkBits) << 2));
    if (chunk === 0) return want(wantsDirect, first >> chunkBits, i);
    const direct = chunk + ((first & chunkMask) << 3);
    const known = load<u32>(direct, 4);
    if (known !== 0 && load<u32>(direct) === second) {
      store<u32>(place, known - 1);
      continue;
    }
    const next = pairCount;
    if (next >> chunkBits === pairChunkCount) return want(wantsPairs, pairChunkCount, i);
    if (known === 0) {
      store<u32>(direct, second);
      store<u32>(direct, next + 1, 4);
      addPair(next, first, second);
      store<u32>(place, next);
      continue;
    }
    const hash = hashOf(first, second);
    const entry = parts + ((hash >> (32 - partBits)) << 4);
    const slots = load<usize>(entry);
    const length = load<usize>(entry, 4);
    const mask = length - 1;
    let slot = slotOf(hash, length);
    let held = load<u32>(slots + slot, 8);
    while (held !== 0 && (load<u32>(slots + slot) !== first || load<u32>(slots + slot, 4) !== second)) {
      slot = (slot + slotBytes) & mask;
      held = load<u32>(slots + slot, 8);
    }
    if (held !== 0) {
      store<u32>(place, held - 1);
      continue;
    }
    const taken = load<u32>(entry, 8);
    if (taken === load<u32>(entry, 12)) return want(wantsSlots, hash >> (32 - partBits), i);
    store<u32>(slots + slot, first);
    store<u32>(slots + slot, second, 4);
    store<u32>(slots + slot, next + 1, 8);
    store<u32>(entry, taken + 1, 8);
    addPair(next, first, second);
    store<u32>(place, next);
  }
  return end;
}

/** Replaces numbers of pairs, `length` of them at `firstsAddress`, by their first numbers, and writes the second ones to `secondsAddress`. */
export function readPairs(length: i32): void {
  for (let i = 0; i < length; i++) {
    const place = firstsAddress + ((<usize>i) << 2);
    const pair = pairAt(load<u32>(place));
    store<u32>(place, load<u32>(pair));
    store<u32>(place + (secondsAddress - firstsAddress), load<u32>(pair, 4));
  }
}

/** Answers how many more bytes the table takes after `grow`. What is free again is counted as taken. */
export function wantedBytes(): usize {
  if (wanted !== wantsSlots) return chunkBytes;
  return load<usize>(parts + (wantedIndex << 4), 4) * 2;
}

/** Takes the memory that was wanted. Answers whether there was some. */
export function grow(): bool {
  if (wanted === wantsSlots) return growPart(wantedIndex);
  if (wantedIndex >= chunksMax) return false;
  const chunk = allocate(chunkBytes);
  if (chunk === 0) return false;
  if (wanted === wantsDirect) {
    store<usize>(directs + (wantedIndex << 2), chunk);
    if (wantedIndex >= directCount) directCount = wantedIndex + 1;
  } else {
    store<usize>(pairs + (wantedIndex << 2), chunk);
    pairChunkCount++;
  }
  return true;
}

function want(what: i32, index: u32, place: i32): i32 {
  wanted = what;
  wantedIndex = index;
  return place;
}

function pairAt(number: u32): usize {
  return load<usize>(pairs + ((number >> chunkBits) << 2)) + ((number & chunkMask) << 3);
}

function addPair(number: u32, first: u32, second: u32): void {
  const pair = pairAt(number);
  store<u32>(pair, first);
  store<u32>(pair, second, 4);
  pairCount = number + 1;
}

function hashOf(first: u32, second: u32): u32 {
  return <u32>(((((<u64>first) << 32) | <u64>second) * hashFactor) >> 32);
}

/** Answers where in a part of that length a hash's look-up begins: by the bits behind those that chose the part. */
function slotOf(hash: u32, length: usize): usize {
  return <usize>((<u64>(hash << partBits) * length) >> 32) & ~(slotBytes - 1);
}

function growPart(part: u32): bool {
  const entry = parts + (part << 4);
  const old = load<usize>(entry);
  const length = load<usize>(entry, 4);
  const taken = load<u32>(entry, 8);
  const slots = allocate(length * 2);
  if (slots === 0) return false;
  setPart(part, slots, length * 2);
  store<u32>(entry, taken, 8);
  const mask = length * 2 - 1;
  for (let from = old; from < old + length; from += slotBytes) {
    const held = load<u32>(from, 8);
    if (held === 0) continue;
    const first = load<u32>(from);
    const second = load<u32>(from, 4);
    let slot = slotOf(hashOf(first, second), length * 2);
    while (load<u32>(slots + slot, 8) !== 0) slot = (slot + slotBytes) & mask;
    v128.store(slots + slot, v128.load(from));
  }
  const list = free + (ctz(length) << 2);
  store<usize>(old, load<usize>(list));
  store<usize>(list, old);
  return true;
}

/** Answers zeros, a power of two of bytes; 0 where memory ends. */
function allocate(length: usize): usize {
  const list = free + (ctz(length) << 2);
  let address = load<usize>(list);
  if (address !== 0) {
    store<usize>(list, load<usize>(address));
  } else {
    address = heapEnd;
    const end = address + length;
    if (end > memoryMax) return 0;
    const has = (<usize>memory.size()) << 16;
    if (end > has && memory.grow(<i32>((end - has + 0xffff) >> 16)) < 0) return 0;
    heapEnd = end;
  }
  // New memory is of zeros.
  const dirtyEnd = min(address + length, written);
  if (dirtyEnd > address) memory.fill(address, 0, dirtyEnd - address);
  if (written < address + length) written = address + length;
  return address;
}
