/** SHA-256 (FIPS 180-4) of four messages at once, each of one block: its bytes, 0x80, zeros, and its length in bits as 64 bits, big-endian. */

const blockBytes: usize = 64;
const rounds: i32 = 64;
const lanes: usize = 4;
const vectorBytes: usize = 16;

/** Address of the four blocks, one behind the other. */
export const blocksAddress: usize = memory.data(256, 16);
/** Address of the digests' first 16 bytes each, one behind the other, as words of the machine. */
export const digestsAddress: usize = memory.data(64, 16);

/** A word of the four messages in each vector. */
const words: usize = memory.data(1024, 16);
// prettier-ignore
const constants: usize = memory.data<u32>([
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
  0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
  0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
  0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
  0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
  0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
  0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
  0xc67178f2,
]);

/** Digests the four blocks. */
export function digestBlocks(): void {
  for (let word: usize = 0; word < 16; word++) store<v128>(words + word * vectorBytes, wordOf(word * 4));
  for (
    let at: usize = words + 16 * vectorBytes;
    at < words + <usize>rounds * vectorBytes;
    at += vectorBytes
  ) {
    const near = v128.load(at - 15 * vectorBytes);
    const far = v128.load(at - 2 * vectorBytes);
    const first = v128.xor(v128.xor(turned(near, 7), turned(near, 18)), i32x4.shr_u(near, 3));
    const second = v128.xor(v128.xor(turned(far, 17), turned(far, 19)), i32x4.shr_u(far, 10));
    const sum = i32x4.add(v128.load(at - 16 * vectorBytes), v128.load(at - 7 * vectorBytes));
    v128.store(at, i32x4.add(i32x4.add(first, second), sum));
  }
  let a = i32x4.splat(0x6a09e667);
  let b = i32x4.splat(0xbb67ae85);
  let c = i32x4.splat(0x3c6ef372);
  let d = i32x4.splat(0xa54ff53a);
  let e = i32x4.splat(0x510e527f);
  let f = i32x4.splat(0x9b05688c);
  let g = i32x4.splat(0x1f83d9ab);
  let h = i32x4.splat(0x5be0cd19);
  for (let round: usize = 0; round < <usize>rounds; round++) {
    const given = i32x4.add(v128.load(words + round * vectorBytes), v128.load32_splat(constants + round * 4));
    const turns = v128.xor(v128.xor(turned(e, 6), turned(e, 11)), turned(e, 25));
    const one = i32x4.add(i32x4.add(h, turns), i32x4.add(v128.bitselect(f, g, e), given));
    const other = v128.xor(v128.xor(turned(a, 2), turned(a, 13)), turned(a, 22));
    const two = i32x4.add(other, v128.bitselect(c, b, v128.xor(a, b)));
    h = g;
    g = f;
    f = e;
    e = i32x4.add(d, one);
    d = c;
    c = b;
    b = a;
    a = i32x4.add(one, two);
  }
  storeWord(0, i32x4.add(a, i32x4.splat(0x6a09e667)));
  storeWord(4, i32x4.add(b, i32x4.splat(0xbb67ae85)));
  storeWord(8, i32x4.add(c, i32x4.splat(0x3c6ef372)));
  storeWord(12, i32x4.add(d, i32x4.splat(0xa54ff53a)));
}

function turned(word: v128, bits: i32): v128 {
  return v128.or(i32x4.shr_u(word, bits), i32x4.shl(word, 32 - bits));
}

/** The word at a place of each block. */
function wordOf(place: usize): v128 {
  let word = v128.load32_zero(blocksAddress + place);
  word = v128.load32_lane(blocksAddress + blockBytes + place, word, 1);
  word = v128.load32_lane(blocksAddress + 2 * blockBytes + place, word, 2);
  word = v128.load32_lane(blocksAddress + 3 * blockBytes + place, word, 3);
  return i8x16.shuffle(word, word, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
}

function storeWord(place: usize, word: v128): void {
  v128.store32_lane(digestsAddress + place, word, 0);
  v128.store32_lane(digestsAddress + vectorBytes + place, word, 1);
  v128.store32_lane(digestsAddress + 2 * vectorBytes + place, word, 2);
  v128.store32_lane(digestsAddress + (lanes - 1) * vectorBytes + place, word, 3);
}
