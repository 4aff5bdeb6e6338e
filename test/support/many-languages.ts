/**
 * Texts in many scripts that every machine has: the names of languages and regions in each other's languages, between
 * signs that fold oddly. The same ones for the same version of ICU.
 */
const languages =
  'am ar be bg bn cs de el en es fa fi fr gu he hi hu hy is it ja ka kk km kn ko lo lt lv mk ml mn mr my ne pa pl ru si ' +
  'sr sv sw ta te th tr uk ur vi yue zh zh-Hant';
const regions = 'AT BR CA CN DE EG FR GB GR IN JP KR MX NG PL RU TH TR US VN'.split(' ');
const oddities = [
  'Kelvin: \u212A k K',
  'long: \u017F s S ß ẞ ss',
  'dots: İ i I ı i\u0307',
  'Σίσυφος ΣΊΣΥΦΟΣ σίσυφοσ',
  'e\u0301 é E\u0301 É Å \u212B a\u030A',
  'ﬁ ﬀ ǆ ǅ Ǆ',
  '\u00B5 \u03BC \u039C',
  '👩🏽‍🚀 𝔘𝔫𝔦 𐐀𐐨',
  'Ⅷ ⅷ ① ½',
];

export function manyLanguages(count: number): Map<string, Buffer> {
  const codes = languages.split(' ');
  return new Map(
    Array.from({ length: count }, (_, i) => [`language-${i}.txt`, Buffer.from(textOf(codes, i))]),
  );
}

function textOf(codes: readonly string[], i: number): string {
  const own = codes[i % codes.length] ?? 'en';
  const languageNames = new Intl.DisplayNames([own], { type: 'language' });
  const regionNames = new Intl.DisplayNames([own], { type: 'region' });
  const lines = codes.map((code, at) => {
    const region = regions[(at + i) % regions.length] ?? 'US';
    return `${code}-${region}: ${languageNames.of(code)}, ${regionNames.of(region)} ${(i * 97 + at) % 1_000}`;
  });
  lines.splice(i % lines.length, 0, oddities[i % oddities.length] ?? '');
  return lines.join(i % 5 === 0 ? '\r\n' : '\n');
}
