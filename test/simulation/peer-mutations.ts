import type { Mutation } from './mutations.ts';

/**
 * Ways to break what several servers owe to each other on their connections, between their threads and at their start: no message of a
 * simulated world has to do with it, so tests of their own notice.
 */
export const peerMutations: readonly Mutation[] = [
  {
    name: 'peers: a copy is as fresh as its reading, whatever placement it meets',
    file: 'actors/log/target-records.js',
    find: 'if (object.placement > placement && passedAtMs === Number.POSITIVE_INFINITY)',
    replace: 'if (false)',
    noticedBy: {
      file: 'actors/log/target-records',
      test: 'nor of one that has passed to a placement that is not known here',
    },
    why: 'somebody else has acknowledged writes since, and the copy says that it is younger than a second',
  },
  {
    name: 'peers: a copy is as fresh as its reading, whatever seal it meets',
    file: 'actors/log/target-records.js',
    find: 'const endMs = object === null ? askedAtMs : await storedAtMs(components, logId, slot);',
    replace: 'const endMs = askedAtMs;',
    noticedBy: {
      file: 'actors/log/target-records',
      test: 'of a log that was sealed nothing is known after its seal was stored',
    },
    why: 'who took over has acknowledged writes since',
  },
  {
    name: 'peers: calls of clients and of actors share their places',
    file: 'src/router/call-budgets.js',
    find: "return kindsByName.get(operation) ?? 'client';",
    replace: "return 'client';",
    noticedBy: {
      file: 'src/router/forward',
      test: 'clients fill their own places, and what actors ask of each other has others',
    },
    why: 'a flood of clients waits for what it has no place left for',
  },
  {
    name: 'peers: a revocation is answered before the others have heard',
    file: 'src/router/other-servers.js',
    find: 'await Promise.all(members.otherLogs().map((logId) => this.#forgetAt(logId, cached, untilMs)));',
    replace: 'void Promise.all(members.otherLogs().map((logId) => this.#forgetAt(logId, cached, untilMs)));',
    noticedBy: {
      file: 'src/router/forward',
      test: 'a revocation is answered when every server has forgotten the tenant',
    },
    why: 'a key that was revoked is still accepted elsewhere',
  },
  {
    name: 'peers: a long message needs no credit',
    file: 'src/peers/outgoing-stream.js',
    find: 'this.#credit -= bytes;',
    replace: '',
    also: [
      { file: 'src/peers/outgoing-stream.js', find: 'this.#credit += bytes;', replace: '' },
      {
        file: 'src/peers/outgoing-stream.js',
        find: 'if (this.#credit + bytes > limits.peerCreditBytes)',
        replace: 'if (false)',
      },
    ],
    noticedBy: {
      file: 'src/peers/streams',
      test: 'a body of 64 MB waits at its source for a slow reader, and small calls pass it',
    },
    why: 'who reads slowly is sent all of a body, and holds it in memory',
  },
  {
    name: 'peers: an owner takes forwards of another placement',
    file: 'src/router/served-calls.js',
    find: "return placement === now && members.isOwn(tenantId, namespace) ? 'own' : 'moved';",
    replace: "return 'own';",
    noticedBy: {
      file: 'src/router/forward',
      test: 'an older placement is refused even where the owner is still the same',
    },
    // Alone it breaks no history: a copy is known by its name, and a late write that nobody has heard of may come whenever it comes. Both are broken by
    // "several: request names of forwards are forgotten at a hand-over".
    why: 'one of two defences against a copy that comes after a hand-over and back is gone',
  },
  {
    name: 'peers: a server joins whatever versions the others speak',
    file: 'src/cluster/join.js',
    find: 'if (apart === undefined)\n        return;',
    replace: 'return;',
    noticedBy: {
      file: 'src/cluster/join',
      test: 'a server of versions that this one does not speak is named, and not joined',
    },
    why: 'they do not understand each other',
  },
  {
    name: 'peers: a server joins with whatever clock',
    file: 'src/cluster/clock-skew.js',
    find: 'if (skewMs <= limits.clockSkewMsMax)\n        return;',
    replace: 'return;',
    noticedBy: {
      file: 'src/cluster/clock-skew',
      test: 'one that differs by more is refused with a sentence that says by how much',
    },
    why: 'ages of objects decide what is deleted',
  },
  {
    name: 'peers: a wrong key is not told apart from a stranger',
    file: 'src/peers/node-tls.js',
    find: "const isWrong = wrongKeys.has(socket) || error.code === 'ERR_SSL_BINDER_DOES_NOT_VERIFY';",
    replace: 'const isWrong = false;',
    noticedBy: {
      file: 'src/peers/peers',
      test: 'a wrong key is one clear line on both sides, and no call leaves',
    },
    why: 'an operator finds no word of the key in the log',
  },
];
