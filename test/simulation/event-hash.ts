/** A hash of everything that happened, in its order: two runs of one seed have the same one. */
export interface EventHash {
  add(text: string): void;
  readonly text: string;
}

export function newEventHash(): EventHash {
  let high = 0x811c9dc5;
  let low = 0x1b873593;
  return {
    add(text) {
      for (let i = 0; i < text.length; i++) {
        const code = text.charCodeAt(i);
        high = Math.imul(high ^ code, 0x01000193);
        low = Math.imul(low ^ code, 0x5bd1e995);
      }
    },
    get text() {
      const hex = (n: number) => (n >>> 0).toString(16).padStart(8, '0');
      return hex(high) + hex(low);
    },
  };
}
