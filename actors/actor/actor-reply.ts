import type { EmbedConfig, Namespace, VectorConfig } from '../../protocol/namespace.ts';
import { emptyReadTally, type ReadTally } from '../storage/block-fetch.ts';

/** What an actor of either kind answers to a call; worker.ts sends it on. */
export interface ActorReply {
  readonly status: number;
  readonly json: string;
  /** The answer's bytes where they are not made from `json`: a document, or MessagePack between threads. */
  readonly packed?: Uint8Array;
  readonly tally: ReadTally;
  readonly cpuMs: number;
  readonly documents: number;
  readonly bytes: number;
  readonly embedTokens: number;
  readonly hostedTokens: number;
  /** Beside those that every answer of the operation has. */
  readonly headers: readonly (readonly [string, string])[];
}

const noHeaders: ActorReply['headers'] = [];

export function reply(json: string, metered: Partial<ActorReply> = {}): ActorReply {
  return {
    status: 200,
    json,
    tally: emptyReadTally(),
    cpuMs: 0,
    documents: 0,
    bytes: 0,
    embedTokens: 0,
    hostedTokens: 0,
    headers: noHeaders,
    ...metered,
  };
}

/** Tokens that a model of a provider took, as they are metered. */
export function tokenMeter(
  provider: string | undefined,
  tokens: number,
): Pick<ActorReply, 'embedTokens' | 'hostedTokens'> {
  return { embedTokens: tokens, hostedTokens: provider === 'service' ? tokens : 0 };
}

/** The Namespace resource, which a namespace tells of itself and a tenant of all its namespaces. */
export function namespaceJson(fields: {
  readonly name: string;
  readonly vector: VectorConfig | null;
  readonly embed: EmbedConfig | null;
  readonly docsWritten: number;
  readonly bytesWritten: number;
  readonly storedBytes: number;
  readonly createdAt: string;
  readonly linked?: Namespace['linked'];
  readonly branched?: Namespace['branched'];
}): string {
  const linked = fields.linked === undefined ? '' : `,"linked":${JSON.stringify(fields.linked)}`;
  const { source, version } = fields.branched ?? {};
  const branched = source === undefined ? '' : `,"branched":${JSON.stringify({ source, version })}`;
  return (
    `{"name":${JSON.stringify(fields.name)},${vectorConfigField(fields.vector)}${embedField(fields.embed)}"docs_written":${fields.docsWritten},` +
    `"bytes_written":${fields.bytesWritten},"stored_bytes":${fields.storedBytes},"created_at":"${fields.createdAt}"${linked}${branched}}`
  );
}

/** Writes the `vector` field with the comma behind it; nothing for text only. */
function vectorConfigField(vector: VectorConfig | null): string {
  return vector === null ? '' : `"vector":{"dims":${vector.dims},"metric":"${vector.metric}"},`;
}

/** Writes the `embed` field with the comma behind it; nothing where texts are not embedded. */
function embedField(embed: EmbedConfig | null): string {
  return embed === null ? '' : `"embed":${JSON.stringify(embed)},`;
}
