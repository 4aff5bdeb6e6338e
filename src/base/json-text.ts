/** Texts in JSON strings, from UTF-8 to UTF-8: long ones need no string of V8's on the way, which it would have to collect. */

const sixCharacters = 1;
/** What JSON says for a byte: 0 the byte itself, 1 `\u00` and its digits, otherwise a backslash and this character. As JSON.stringify does. */
const escapes = new Uint8Array(256).fill(sixCharacters, 0, 0x20);
for (const character of '\b\t\n\f\r"\\')
  escapes[character.charCodeAt(0)] = JSON.stringify(character).charCodeAt(2);

const backslash = 0x5c;
const hexDigits = Buffer.from('0123456789abcdef');

/** How many bytes a text takes in a JSON string, without the quotes. `text` is UTF-8. */
export function escapedBytes(text: Uint8Array): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const escaped = escapes[text[i] as number] as number;
    if (escaped !== 0) bytes += escaped === sixCharacters ? 5 : 1;
  }
  return bytes;
}

/** Writes a text as it stands in a JSON string, without the quotes, into `target` from `start` on. Answers where it ends. */
export function writeEscaped(text: Uint8Array, target: Uint8Array, start: number): number {
  let at = start;
  for (let i = 0; i < text.length; i++) {
    const byte = text[i] as number;
    const escaped = escapes[byte] as number;
    if (escaped === 0) target[at++] = byte;
    else if (escaped === sixCharacters) at = writeCode(byte, target, at);
    else {
      target[at++] = backslash;
      target[at++] = escaped;
    }
  }
  return at;
}

/** Writes a byte as `\u00` and two digits. */
function writeCode(byte: number, target: Uint8Array, start: number): number {
  target[start] = backslash;
  target[start + 1] = 0x75;
  target[start + 2] = 0x30;
  target[start + 3] = 0x30;
  target[start + 4] = hexDigits[byte >>> 4] as number;
  target[start + 5] = hexDigits[byte & 15] as number;
  return start + 6;
}
