import type { KeyRing } from '../../src/accounts/key-ring.ts';

/** Keys outside a rotation. */
export const alone = (present: Uint8Array): KeyRing => ({ present, previous: null });
