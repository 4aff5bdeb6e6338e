import type { Mutation } from './mutations.ts';

/** Ways to break what links and branches rest upon. */
export const linkMutations: readonly Mutation[] = [
  {
    name: 'links: a branch is made without a pin',
    file: 'actors/namespace/commit-manifest.js',
    find: '...(pinOf === undefined ? {} : { pins: [...(before.pins ?? []), pinOf(segments)] }),',
    replace: '',
    why: 'its parent collects what it reads',
  },
  {
    name: 'links: the pin is stored with the next commit of its parent',
    file: 'actors/namespace/commit-manifest.js',
    find: '...(pinOf === undefined ? {} : { pins: [...(before.pins ?? []), pinOf(segments)] }),',
    replace: '...{ pins: [...(before.pins ?? []), ...(state.pinsLater ?? [])] },',
    also: [
      {
        file: 'actors/namespace/commit-manifest.js',
        find: 'state.committed = await commit(components, manifestCodec, { key, next, current });',
        replace:
          'state.committed = await commit(components, manifestCodec, { key, next, current }); state.pinsLater = pinOf === undefined ? [] : [pinOf(segments)];',
      },
    ],
    why: 'a crash until then leaves a branch whose parent holds nothing for it',
  },
  {
    name: 'links: collection ignores pins',
    file: 'actors/namespace/collect-garbage.js',
    find: '&& !pinned.has(keyOfObject(namespaceId, object))',
    replace: '',
    why: 'what a branch reads is deleted once its parent has merged it',
  },
  {
    name: 'links: a deleted source leaves no remnant',
    file: 'actors/storage/shared-objects.js',
    find: 'if ((manifest.pins ?? []).length === 0)\n        return null;\n    const pinned = pinnedKeys(manifest);\n    const { namespaceId, segments, retired } = manifest;',
    replace:
      'return null;\n    const pinned = pinnedKeys(manifest);\n    const { namespaceId, segments, retired } = manifest;',
    why: 'its branches read objects that are gone',
  },
  {
    name: 'links: a branch leaves its parent while it names its objects',
    file: 'actors/namespace/share-namespace.js',
    find: 'if (manifest === undefined || parent === null || needsParent(manifest))',
    replace: 'if (manifest === undefined || parent === null)',
    why: 'the parent does not hold them any more',
  },
  {
    name: 'links: a holder that is deleted keeps its pin',
    file: 'actors/namespace/drop.js',
    find: 'await components.directory.release(value.tenantId, parent.name, parent.namespaceId, value.namespaceId);',
    replace: '',
    why: 'what it held stays for ever',
  },
  {
    name: 'links: a link leads to whoever has the name',
    file: 'actors/host/actor-host.js',
    find: 'if (call.link !== undefined && call.link.sourceId !== actor.identity.namespaceId)',
    replace: 'if (false)',
    also: [
      {
        file: 'actors/tenant/tenant-state.js',
        find: 'if (linked === undefined)\n        return false;',
        replace: 'if (linked === undefined || linked.follows)\n        return false;',
      },
    ],
    why: 'a namespace that was made by the name of a deleted source is another one',
  },
  {
    name: 'links: a branch begins without what its parent has in memory',
    file: 'actors/namespace/share-namespace.js',
    find: 'return { ...child, tail, retired: [],',
    replace: 'return { ...child, tail: null, retired: [],',
    why: 'its parent was at a later version',
  },
  {
    name: 'links: a branch forgets what was deleted in its parent',
    file: 'actors/storage/shared-objects.js',
    find: 'tombstonesObject: set === null ? null : { ...set, home: set.home ?? namespaceId },',
    replace: 'tombstones: { count: 0, chunks: new Map() }, tombstonesObject: null,',
    why: 'documents come back that its source has not',
  },
  {
    name: 'links: a link that stays outlives its source',
    file: 'actors/tenant/tenant-names.js',
    find: 'dropInTime([{ name, namespaceId }, ...linksAt(log.state, namespaceId)])',
    replace: 'dropInTime([{ name, namespaceId }])',
    why: 'the deletion is answered while others still read it',
  },
  {
    name: 'links: the present version is not looked at again after a flush',
    noticedBy: {
      file: 'simulation/scenes',
      test: 'a link that was asked for at a version does not show what came while it was made',
    },
    file: 'actors/namespace/share-namespace.js',
    find: 'await flushNamespace(components, state);\n        if (!isPresent())\n            return null;',
    replace: 'await flushNamespace(components, state);',
    why: 'a link that was asked for at one version stays at a later one',
  },
];
