import type { Mutation, NoticingTest } from './mutations.ts';

/** A scene that plays what worlds hardly meet. */
const scene = (test: string): NoticingTest => ({ file: 'simulation/scenes', test });

/** Ways to break what several servers owe to each other, each of which worlds of three servers must notice. */
const broken: readonly Mutation[] = [
  {
    name: 'several: records that moved away are not refused by the log',
    file: 'actors/log/group-commit.js',
    find: 'if (next.hasMoved) {',
    replace: 'if (false) {',
    also: [{ file: 'actors/log/group-commit.js', find: '!this.#isOwn(head) || ', replace: '' }],
    why: 'they are acknowledged behind the barrier up to which the new owner has read',
  },
  {
    name: 'several: a new owner waits for nobody',
    file: 'actors/log/hand-over.js',
    find: "if (ends.every(({ kind }) => kind === 'barred' || kind === 'sealed')) {",
    replace: 'if (true) {',
    why: 'the old one goes on acknowledging and reading',
  },
  {
    name: 'several: a later barrier counts for an earlier view',
    noticedBy: scene('who meets the barrier of a later view takes nothing over by an earlier one'),
    file: 'actors/log/log-tail.js',
    find: "return { kind: 'later' };",
    replace: "return { kind: 'barred', after: this.#reached.after, through: this.#reached.through };",
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
    noticedBy: scene('who was evicted and does not know answers no read from before'),
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
    find: 'this.#replays.drop((target) => !ownership.isReady(keyOfTarget(target)));',
    replace: '',
    why: 'records that waited are there twice when their target comes back',
  },
  {
    name: 'several: an empty slot is evidence while a PUT is on its way',
    noticedBy: scene('a slot that is empty while an append to it is on its way is no evidence'),
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
  {
    name: 'several: owners of one view and members of another',
    file: 'actors/log/hand-over.js',
    find: 'this.#standing = standing;\n        this.#noteSeals(standing);\n        if (isLater)',
    replace:
      'this.#standing = { ...standing, others: this.#standing.others };\n        this.#noteSeals(standing);\n        if (isLater)',
    why: 'nobody waits for a member that came after the view before',
  },
  {
    name: 'several: who meets 412 sends its own manifest again with the fresh ETag',
    file: 'actors/storage/manifest-store.js',
    find: 'throw new Deposed(',
    replace: 'if (found !== null) { current = found; continue; } throw new Deposed(',
    also: [
      {
        file: 'actors/storage/manifest-store.js',
        find: 'const { key, next, current } = change;',
        replace: 'let { key, next, current } = change;',
      },
    ],
    why: 'what the last flush of the owner before it stored is dropped',
  },
  {
    name: 'several: a tenant that was given away resolves names',
    noticedBy: scene('a tenant’s process that was evicted does not say of a name that it is not there'),
    file: 'actors/host/actor-host.js',
    find: "effectOf(operation).does === 'read' || operation === internalCalls.resolveNamespace",
    replace: "effectOf(operation).does === 'read'",
    also: [
      {
        file: 'actors/host/actor-host.js',
        find: 'if (error instanceof ApiError && error.status === 404)',
        replace: "if (error instanceof ApiError && error.status === 404 && call.namespace !== '')",
      },
    ],
    why: 'it says of a name that was made since that it is not there',
  },
  {
    name: 'several: evidence of an append dates from its last try',
    noticedBy: scene('the second try of an append that was stored is no evidence of its own moment'),
    file: 'actors/log/group-commit.js',
    find: 'this.#noteOpen(beganAt);\n        this.#lastSlot = slot;',
    replace: 'this.#noteOpen(write.triedAt);\n        this.#lastSlot = slot;',
    also: [
      {
        file: 'actors/log/append.js',
        find: 'const put = await store.putIfAbsent(',
        replace:
          'write.triedAt = { monotonicMs: clock.monotonic(), wallMs: clock.now() }; const put = await store.putIfAbsent(',
      },
    ],
    why: 'a seal came between the first try, which was stored, and the one that learned of it',
  },
  {
    name: 'several: evidence ages by the monotonic clock alone',
    file: 'src/base/clock.js',
    find: 'return Math.max(later.monotonicMs - earlier.monotonicMs, later.wallMs - earlier.wallMs);',
    replace: 'return later.monotonicMs - earlier.monotonicMs;',
    why: 'it stands still while a machine sleeps',
  },
  {
    name: 'several: what memory has is answered without evidence',
    noticedBy: scene('who was evicted and does not know answers no read from before'),
    file: 'actors/host/actor-host.js',
    find: 'if (this.#components.evidence?.isFresh() === false)',
    replace: 'if (false)',
    why: 'the shortest way skips what the others wait for',
  },
  {
    name: 'several: what has come is opened before it was replayed',
    file: 'actors/actor/ownership.js',
    find: 'return this.#isSettled && this.#chain.every((owners) => isOwn(owners, key));',
    replace: 'return this.isOwn(key);',
    why: 'its last records are in the log of whoever had it before',
  },
  {
    name: 'several: a floor says nothing of placements',
    noticedBy: scene('who waits for a barrier that was collected learns of it from the floor'),
    file: 'actors/log/log-service.js',
    find: 'placement: own.commit.placementOf(floor)',
    replace: 'placement: 0',
    why: 'who waits for a barrier that was collected waits for ever',
  },
  {
    name: 'several: the placement stays when the owners change',
    file: 'src/cluster/plan-view.js',
    find: 'placement: view.placement + (isSame ? 0 : 1),',
    replace: 'placement: view.placement,',
    why: 'nobody sends a barrier, nobody waits for one',
  },
  {
    name: 'several: an eviction is retried by the id of the server',
    noticedBy: scene('an eviction that is late does not take the next process of the server'),
    file: 'src/cluster/own-membership.js',
    find: 'isMember(view) ? planRemoval(view, { logId: whom, sealSeq }) : null',
    replace:
      'isMember(view) ? planRemoval(view, { logId: view.members.find((member) => member.serverId === evicted)?.logId ?? whom, sealSeq }) : null',
    also: [
      {
        file: 'src/cluster/own-membership.js',
        find: 'const sealSeq = await log.seal(whom, follower.view.placement + 1);',
        replace:
          'const evicted = follower.view.members.find((member) => member.logId === whom)?.serverId; const sealSeq = await log.seal(whom, follower.view.placement + 1);',
      },
    ],
    why: 'a server that has started again loses the log that nobody sealed',
  },
  {
    name: 'several: anybody drops a namespace',
    noticedBy: scene('a namespace whose owner has not given it away yet is not dropped by the next one'),
    file: 'actors/host/actor-host.js',
    find: 'this.#components.ownership.require(placementKey(call.tenantId, call.namespace));\n                await this.#dropById',
    replace: 'await this.#dropById',
    also: [
      {
        file: 'actors/host/actor-host.js',
        find: 'if (!ownership.isReady(key))\n            await ownership.whenReady(key);',
        replace:
          'if (!ownership.isReady(key) && call.operation !== internalCalls.dropNamespace)\n            await ownership.whenReady(key);',
      },
      {
        file: 'src/router/served-calls.js',
        find: "return placement === now && members.isOwn(tenantId, namespace) ? 'own' : 'moved';",
        replace:
          "return (placement === now && members.isOwn(tenantId, namespace)) || this.#call.operation === 'namespace.drop' ? 'own' : 'moved';",
      },
    ],
    why: 'its owner has it open and acknowledges writes that are gone',
  },
  {
    name: 'several: a forward that comes twice is done twice',
    file: 'src/peers/request-names.js',
    find: 'return window.admit(sequence);',
    replace: 'window.admit(sequence); return true;',
    why: 'the second copy puts an old value over a newer one',
  },
  {
    name: 'several: request names of forwards are forgotten at a hand-over',
    file: 'src/peers/request-names.js',
    find: 'let window = this.#origins.get(origin);',
    replace:
      'let window = this.#origins.get(origin); if (window !== undefined && window.moves !== globalThis.handOvers) window = undefined;',
    also: [
      {
        file: 'src/peers/request-names.js',
        find: 'window = new Window(this.#remembered);',
        replace: 'window = new Window(this.#remembered); window.moves = globalThis.handOvers;',
      },
      {
        file: 'src/router/members.js',
        find: 'if (members.owners.placement > placement)\n',
        replace:
          'if (members.owners.placement > placement) globalThis.handOvers = (globalThis.handOvers ?? 0) + 1;\n        if (members.owners.placement > placement)\n',
      },
      {
        file: 'src/router/served-calls.js',
        find: "return placement === now && members.isOwn(tenantId, namespace) ? 'own' : 'moved';",
        replace: "return members.isOwn(tenantId, namespace) ? 'own' : 'moved';",
      },
    ],
    why: 'a copy that is late is done again by whoever kept, or got back, what it is about',
  },
  {
    name: 'several: a write is sent again when its answer is lost',
    file: 'src/router/plan-forward.js',
    find: "if (tried.does === 'write')",
    replace: 'if (false)',
    why: 'it may have been done',
  },
  {
    name: 'several: a copy of a write has a name of its own',
    file: 'src/router/forward.js',
    find: 'deadlineMs, placement, name };',
    replace: 'deadlineMs, placement, name: peers.newName() };',
    why: 'its owner takes it for another write, and does it after those that came in between',
  },
];

export const clusterMutations: readonly Mutation[] = broken.map((mutation) => ({ ...mutation, servers: 3 }));
