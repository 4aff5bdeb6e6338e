/** Objects as manifests name them, and who else holds them: see shared-objects.ts. */
import { paths } from '../../src/object-store/paths.ts';

export type ObjectKind = 'segment' | 'deletes' | 'graph';

/** An immutable object that a manifest names. */
export interface ObjectRef {
  readonly kind: ObjectKind;
  readonly id: string;
  /** The namespace in whose folder the object lies; absent where that is the one whose manifest names it. */
  readonly home?: string;
  /** Bytes of the object; absent in manifests from before format 8. */
  readonly size?: number;
}

/** Another namespace's hold on objects that a manifest names. */
export interface Pin {
  /** The name of the namespace that holds them. */
  readonly name: string;
  readonly namespaceId: string;
  /** When the hold began, in milliseconds since 1970. */
  readonly atMs: number;
  readonly objects: readonly ObjectRef[];
}

/** The namespace that has a pin for this one. */
export interface Parent {
  readonly name: string;
  readonly namespaceId: string;
}

/** Makes the field `home`, or no field where there is no home to name. */
export function homeField(home: string | undefined): { readonly home?: string } {
  return home === undefined ? {} : { home };
}

export function keyOfObject(namespaceId: string, { kind, id, home = namespaceId }: ObjectRef): string {
  switch (kind) {
    case 'segment':
      return paths.namespaceSegment(home, id);
    case 'deletes':
      return paths.namespaceTombstones(home, id);
    case 'graph':
      return paths.namespaceGraph(home, id);
  }
}
