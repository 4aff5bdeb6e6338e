/** Random metas as JSON text, and filters over them: every kind of value, and numbers where comparisons go wrong. */
type Chance = () => number;

const pick = <T>(random: Chance, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;

const numbers = [
  '0',
  '-0',
  '0.0',
  '-0.0',
  '1',
  '3',
  '3.0',
  '3.5',
  '3e0',
  '-7',
  '255',
  '256',
  '65536',
  '4294967295',
  '4294967296',
  '-4294967297',
  '9007199254740991',
  '9007199254740992',
  '9007199254740993',
  '-9007199254740993',
  '9007199254740992.0',
  '435090932899640449',
  '435090932899640448.0',
  '9223372036854775807',
  '9223372036854775808',
  '-9223372036854775808',
  '-9223372036854775809',
  '9223372036854775807.0',
  '18446744073709551616',
  '100000000000000000000000000000001',
  '1e300',
  '-1e300',
  '1.7976931348623157e308',
  '5e-324',
  '0.1',
];
/** A document may have it, a filter may not. */
const infinities = ['1e999', '-1e999'];
const strings = [
  '',
  'a',
  'A',
  'note',
  'Größe',
  '潮汐',
  '🌊',
  '3',
  'null',
  'true',
  'a\u0000b',
  '\ufffd',
  'ſ',
  'x'.repeat(1024),
];
const nested = [
  '[]',
  '[1]',
  '[1.0]',
  '["a"]',
  '[[1],{"b":2}]',
  '{}',
  '{"a":1}',
  '["a","a"]',
  '[9007199254740993]',
];
const keys = ['a', 'b', 'kind', 'größe', '', '__proto__', 'constructor', 'key "quoted"', 'z'];

function stringText(random: Chance): string {
  const value = random() < 0.7 ? pick(random, strings) : `s${Math.floor(random() * 50)}`;
  if (random() < 0.02) return JSON.stringify('y'.repeat(1025 + Math.floor(random() * 3)));
  const text = JSON.stringify(value);
  // As it may come from elsewhere: escaped without need.
  return random() < 0.2
    ? text.replace(/[a-z]/, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)
    : text;
}

function numberText(random: Chance): string {
  if (random() < 0.5) return pick(random, numbers);
  if (random() < 0.3) return String(Math.floor(random() * 10));
  if (random() < 0.5)
    return ((random() - 0.5) * 10 ** Math.floor(random() * 8)).toFixed(1 + Math.floor(random() * 6));
  return String((random() - 0.5) * 10 ** Math.floor(random() * 12));
}

export function valueText(random: Chance): string {
  const shape = random();
  if (shape < 0.4) return numberText(random);
  if (shape < 0.7) return stringText(random);
  if (shape < 0.85) return pick(random, ['true', 'false', 'null']);
  if (shape < 0.87) return pick(random, infinities);
  return pick(random, nested);
}

/** What one key mostly has: columns of one kind, of two, of all. */
function valueUnder(random: Chance, key: string): string {
  if (key === 'a') return random() < 0.01 ? valueText(random) : String(1000 + Math.floor(random() * 100));
  if (key === 'b') return JSON.stringify(`v${Math.floor(random() * 20)}`);
  if (key === 'kind') return pick(random, ['true', 'false']);
  return valueText(random);
}

/** Null for a document without meta. */
export function randomMeta(random: Chance): string | null {
  if (random() < 0.05) return null;
  const chosen = keys.filter(() => random() < 0.6);
  if (random() < 0.05) chosen.push(pick(random, keys));
  if (random() < 0.2) chosen.reverse();
  const space = random() < 0.1 ? ' ' : '';
  const members = chosen.map((key) => `${JSON.stringify(key)}${space}:${space}${valueUnder(random, key)}`);
  return `{${space}${members.join(`${space},`)}${space}}`;
}

/** Filters as JSON text: those that are refused are the caller's to leave out. */
export function randomFilter(random: Chance): string {
  const count = random() < 0.7 ? 1 : 1 + Math.floor(random() * 3);
  const members = Array.from({ length: count }, () => {
    const key = random() < 0.05 ? 'nobody has it' : pick(random, keys);
    return `${JSON.stringify(key)}:${conditionText(random, key)}`;
  });
  return `{${members.join(',')}}`;
}

function conditionText(random: Chance, key: string): string {
  const scalar = () => {
    const text = random() < 0.6 ? valueUnder(random, key) : valueText(random);
    return text.startsWith('{') ? '1' : text;
  };
  const listed = () => `[${Array.from({ length: Math.floor(random() * 9) }, scalar).join(',')}]`;
  const shape = random();
  if (shape < 0.2) {
    const text = scalar();
    return text.startsWith('[') ? `{"eq":${text}}` : text;
  }
  if (shape < 0.35) return `{"ne":${scalar()}}`;
  if (shape < 0.45) return `{"eq":${scalar()}}`;
  if (shape < 0.6) return random() < 0.5 ? listed() : `{"in":${listed()}}`;
  const bound = () => (key === 'a' && random() < 0.7 ? String(1000 + random() * 100) : numberText(random));
  const one = `"${pick(random, ['gt', 'gte'])}":${bound()}`;
  const other = `"${pick(random, ['lt', 'lte'])}":${bound()}`;
  return random() < 0.3 ? `{${one},${other}}` : `{${random() < 0.5 ? one : other}}`;
}
