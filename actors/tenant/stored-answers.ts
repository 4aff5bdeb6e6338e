import { limits } from '../../protocol/limits.ts';
import type { StoredAnswer } from '../../protocol/stored-tenant.ts';

/**
 * The answers that a tenant keeps for repetitions of their requests. Pure: what goes is decided by the times, the number and
 * the lengths of the answers themselves, so that every replay of the log comes to the same ones.
 *
 * When there are too many the oldest go, rather than that the next request is refused: whoever repeats a request does so within
 * seconds, and a header that makes requests safe must not be what stops them.
 */
export function storeAnswer(answers: Map<string, StoredAnswer>, answer: StoredAnswer): void {
  // Deleted first, so that the map is in the order of time.
  answers.delete(answer.keyDigest);
  answers.set(answer.keyDigest, answer);
  let bytes = answerBytes(answers);
  for (const [keyDigest, each] of answers) {
    const isOver = each.at <= answer.at - limits.idempotentAnswerKeptMs;
    const isFull = answers.size > limits.idempotentAnswersMax || bytes > limits.idempotentAnswersBytesMax;
    if (!isOver && !isFull) return;
    answers.delete(keyDigest);
    bytes -= sealedBytes(each);
  }
}

/** What the answers take that may be long: those themselves, sealed. */
export function answerBytes(answers: ReadonlyMap<string, StoredAnswer>): number {
  let bytes = 0;
  for (const each of answers.values()) bytes += sealedBytes(each);
  return bytes;
}

const sealedBytes = ({ envelope }: StoredAnswer): number => envelope?.sealed.byteLength ?? 0;

/** Null where nothing is known of the key, or not any more. */
export function storedAnswer(
  answers: ReadonlyMap<string, StoredAnswer>,
  keyDigest: string,
  now: number,
): StoredAnswer | null {
  const answer = answers.get(keyDigest);
  return answer === undefined || answer.at <= now - limits.idempotentAnswerKeptMs ? null : answer;
}
