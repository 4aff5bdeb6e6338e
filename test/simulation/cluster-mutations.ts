import type { Mutation } from './mutations.ts';

/** Ways to break what several servers owe to each other, each of which worlds of three servers must notice. */
const broken: readonly Mutation[] = [
  {
    name: 'several: records that moved away are not refused by the log',
    file: 'actors/log/group-commit.js',
    find: 'if (!this.#isOwn(next.head)) {',
    replace: 'if (false) {',
    why: 'they are acknowledged behind the barrier up to which the new owner has read',
  },
  {
    name: 'several: a new owner waits for nobody',
    file: 'actors/log/hand-over.js',
    find: "if (waitMs <= 0 && ends.every(({ kind }) => kind === 'barred' || kind === 'sealed')) {",
    replace: 'if (waitMs <= 0) {',
    why: 'the old one goes on acknowledging and reading',
  },
  {
    name: 'several: a later barrier counts for an earlier view',
    file: 'actors/log/log-tail.js',
    find: "return { kind: 'later' };",
    replace: "return { kind: 'barred', through: this.#reached.through };",
    why: 'in between the other one may have owned what it has given away again',
  },
  {
    name: 'several: what moved away is read on',
    file: 'actors/host/actor-host.js',
    find: 'this.#namespaces.giveUp((key) => !isOwnSlot(key));',
    replace: '',
    why: 'when it comes back it has not what was written elsewhere',
  },
  {
    name: 'several: reads are not waited out after a seal',
    file: 'actors/log/log-service.js',
    find: 'readsOutliveSealMs: this.#isBesideOthers ? limits.readsOutliveSealMs : 0',
    replace: 'readsOutliveSealMs: 0',
    why: 'for a second its process does not know that others write',
  },
  {
    name: 'several: reads need no evidence',
    file: 'actors/actor/read-evidence.js',
    find: 'return ageMs <= limits.readEvidenceMsMax;',
    replace: 'return true;',
    why: 'a server that was paused and evicted answers from before',
  },
  {
    name: 'several: the floor passes what has moved away',
    file: 'actors/log/log-service.js',
    find: 'this.#ask(logCalls.lookUp, target, logId);\n        for (const',
    replace:
      'unflushed.flushed(target, { logId, slot: Number.MAX_SAFE_INTEGER, index: 0 }, 0);\n        for (const',
    why: 'its new owner has not flushed it, and the next one finds it nowhere',
  },
  {
    name: 'several: the logs of members are not read',
    file: 'actors/log/hand-over.js',
    find: '.filter(([logId]) => logs.includes(logId) && !isRemoved.has(logId))',
    replace: '.filter(() => false)',
    why: 'what a living server wrote before it gave something away is lost',
  },
  {
    name: 'several: records are replayed log by log',
    file: 'actors/host/waiting-replays.js',
    find: 'return records.toSorted((a, b) => a.head.version - b.head.version);',
    replace: 'return records;',
    why: 'what went and came back has records in three places, which are in no order there',
  },
  {
    name: 'several: what was replayed before counts again',
    file: 'actors/host/actor-host.js',
    find: 'this.#replays.drop((target) => !ownership.isReady(keyOf(target)));',
    replace: '',
    why: 'records that waited are there twice when their target comes back',
  },
  {
    name: 'several: an empty slot is evidence while a PUT is on its way',
    file: 'actors/log/group-commit.js',
    find: 'const free = this.#lastSlot + (this.#sending ? 2 : 1);',
    replace: 'const free = this.#lastSlot + 1;',
    why: 'the slot was stored, sealed above, taken over and collected',
  },
  {
    name: 'several: what is written shows before its name is durable elsewhere',
    file: 'actors/namespace/namespace-actor.js',
    find: 'if (opening.created)\n            this.#naming = confirmed;',
    replace: '',
    why: 'the server that makes the name is lost, and what was read is gone',
  },
];

export const clusterMutations: readonly Mutation[] = broken.map((mutation) => ({ ...mutation, servers: 3 }));
