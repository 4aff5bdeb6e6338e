import { type InternalCall, internalCallList } from './internal-calls.ts';
import type { Effect } from './operations/effect.ts';
import { type Operation, operationList } from './operations.ts';

/** What an ActorCall may name: an operation of the interface, or a call between parts of the server. */
const byName: ReadonlyMap<string, Operation | InternalCall> = new Map(
  [...operationList, ...internalCallList].map((each) => [each.name, each]),
);

/** The effect of what an ActorCall names. Throws for a name that neither table has: nobody may send one. */
export function effectOf(name: string): Effect {
  return named(name).effect;
}

/** Whether either table has the name: another server may have one from a later version. */
export function isKnownCall(name: string): boolean {
  return byName.has(name);
}

/** Whether its body is a file, of which an actor is told the path on its own server's disk. */
export function takesFile(name: string): boolean {
  const called = named(name);
  return 'request' in called && called.request === 'file';
}

/** Whether a server that stops still serves it: what ends work that was begun. */
export function endsBegunWork(name: string): boolean {
  const called = named(name);
  return 'endsBegunWork' in called && called.endsBegunWork;
}

/** How the documents in the body of a call change those of its namespace; null for whatever isn't such a write. */
export function documentChangeOf(name: string): Operation['changes'] {
  const called = named(name);
  return 'changes' in called ? called.changes : null;
}

function named(name: string): Operation | InternalCall {
  const called = byName.get(name);
  if (called === undefined) throw new Error(`${name} is neither an operation nor an internal call`);
  return called;
}
