/** Proof that whoever brings a code is who asked for it (RFC 7636). S256 alone: `plain` would show the proof with the request. */
import { createHash, timingSafeEqual } from 'node:crypto';

const challengeForm = /^[A-Za-z0-9_-]{43}$/;
const verifierForm = /^[A-Za-z0-9._~-]{43,128}$/;

export function isChallenge(text: string): boolean {
  return challengeForm.test(text);
}

/** Whether the challenge was made of this verifier. False too for a verifier that has not the form of one. */
export function verifierFits(verifier: string, challenge: string): boolean {
  if (!verifierForm.test(verifier) || !isChallenge(challenge)) return false;
  const made = createHash('sha256').update(verifier).digest('base64url');
  return timingSafeEqual(Buffer.from(made), Buffer.from(challenge));
}
