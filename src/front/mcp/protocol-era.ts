/**
 * Which of MCP's two eras a request is of, and whether its headers agree with it.
 *
 * 1. `initialize` is of the legacy era, unless it carries a whole modern envelope.
 * 2. A modern version in `_meta`, `server/discover`, or a modern `MCP-Protocol-Version` header make it modern: its `_meta` must be
 *    whole (-32602), the headers must say what the body says (-32020), and the version must be one that we speak (-32022).
 * 3. Everything else is legacy: the version header may be missing, and must be one that we speak where it is there.
 *
 * The order of the checks is that of the SDKs' servers, so that a client is told the same first.
 */
import type { HeaderOf } from '../../auth/authenticate.ts';
import { stringOf } from './json-members.ts';
import { RpcError, type RpcMessage } from './json-rpc.ts';
import type { ProtocolVersions } from './sdk-types.ts';

export type Era = 'modern' | 'legacy';

export const modernVersion = '2026-07-28';
/** The newest first: what a client is offered that asks for one that we don't speak. */
export const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26'] as const;
export const modernVersions: ProtocolVersions = [modernVersion];
const supportedVersions: ProtocolVersions = [...modernVersions, ...legacyVersions];

/** The version that allows batches. It has no version header. */
const batchVersion = '2025-03-26';

const metaKeys = {
  version: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
} as const;

/** Throws RpcError. */
export function eraOf(message: RpcMessage, header: HeaderOf): Era {
  const named = trimmed(header('mcp-protocol-version'));
  const claimed = claimedVersion(message);
  const isNamedModern = named !== undefined && isModern(named);
  if (message.method === 'initialize' && !(isModern(claimed ?? '') && envelopeProblem(message) === null)) {
    if (isNamedModern) throw mismatch(`initialize is of older versions than the header's ${shown(named)}`);
    return 'legacy';
  }
  const isModernRequest = isNamedModern || isModern(claimed ?? '') || message.method === 'server/discover';
  if (message.id === null || !isModernRequest) return legacy(named, message);
  const problem = envelopeProblem(message);
  if (problem !== null) throw new RpcError('invalidParams', problem);
  if (named !== undefined && named !== claimed)
    throw mismatch(`MCP-Protocol-Version is ${shown(named)}, and _meta says ${shown(claimed)}`);
  const method = trimmed(header('mcp-method'));
  if (method !== undefined && method !== message.method)
    throw mismatch(`Mcp-Method is ${shown(method)}, and the body's method is ${shown(message.method)}`);
  if (claimed !== modernVersion) throw unsupported(claimed, modernVersions);
  if (named === undefined) throw mismatch('the header MCP-Protocol-Version is missing');
  if (method === undefined) throw mismatch('the header Mcp-Method is missing');
  if (message.method === 'tools/call') checkName(message, header);
  return 'modern';
}

/** Whether a batch may be sent by who names this version. Throws RpcError. */
export function checkBatch(messages: readonly (RpcMessage | RpcError)[], header: HeaderOf): void {
  const named = trimmed(header('mcp-protocol-version'));
  const isModernElement = (each: RpcMessage | RpcError) =>
    !(each instanceof RpcError) && isModern(claimedVersion(each) ?? '');
  if ((named !== undefined && named !== batchVersion) || messages.some(isModernElement))
    throw new RpcError(
      'invalidRequest',
      'batches are of version 2025-03-26 alone: send one message a request',
    );
}

function legacy(named: string | undefined, { id }: RpcMessage): Era {
  if (named === undefined || supportedVersions.includes(named)) return 'legacy';
  if (id === null && isModern(named)) return 'legacy';
  throw unsupported(named, supportedVersions);
}

/** Versions are dates. */
function isModern(version: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(version) && version >= modernVersion;
}

function claimedVersion({ params }: RpcMessage): string | null {
  return stringOf(params?.get('_meta')?.members?.get(metaKeys.version));
}

/** What is wrong with `_meta`, or null. */
function envelopeProblem({ params }: RpcMessage): string | null {
  const meta = params?.get('_meta')?.members ?? null;
  if (meta === null)
    return 'params._meta is missing: it must have the protocol version and the client capabilities';
  if (stringOf(meta.get(metaKeys.version)) === null)
    return `params._meta["${metaKeys.version}"] must be a version such as "${modernVersion}"`;
  if (meta.get(metaKeys.clientCapabilities)?.json[0] !== openBrace)
    return `params._meta["${metaKeys.clientCapabilities}"] must be a JSON object`;
  const clientInfo = meta.get(metaKeys.clientInfo);
  if (clientInfo !== undefined && clientInfo.json[0] !== openBrace)
    return `params._meta["${metaKeys.clientInfo}"] must be a JSON object`;
  return null;
}

const openBrace = 0x7b;

function checkName({ params }: RpcMessage, header: HeaderOf): void {
  const name = stringOf(params?.get('name'));
  const sent = trimmed(header('mcp-name'));
  // What has no name is refused for that.
  if (name === null) return;
  if (sent === undefined) throw mismatch('the header Mcp-Name is missing');
  const decoded = decodedHeader(sent);
  if (decoded === null) throw mismatch('Mcp-Name begins as base64 and is none');
  if (decoded !== name) throw mismatch(`Mcp-Name is ${shown(sent)}, and the body's name is ${shown(name)}`);
}

/** A value that no header can carry comes as `=?base64?…?=`. Null where that is not base64 of UTF-8. */
function decodedHeader(value: string): string | null {
  const encoded = /^=\?base64\?(.*)\?=$/i.exec(value)?.[1];
  if (encoded === undefined) return value;
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('base64').replace(/=+$/, '') !== encoded.replace(/=+$/, '')) return null;
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) ? text : null;
}

/** What a client wrote, as far as a sentence needs it. */
function shown(text: string | null | undefined): string {
  return String(text).slice(0, shownCharactersMax);
}

const shownCharactersMax = 100;

function trimmed(value: string | undefined): string | undefined {
  return value?.replace(/^[ \t]+|[ \t]+$/g, '');
}

function mismatch(sentence: string): RpcError {
  return new RpcError('headerMismatch', `headers and body disagree: ${sentence}`);
}

/** `supported`: of the era of the request, as `server/discover` or `initialize` would tell it. */
function unsupported(requested: string | null, supported: ProtocolVersions): RpcError {
  return new RpcError('unsupportedVersion', `this server does not speak version ${shown(requested)}`, {
    data: { supported, requested: requested && shown(requested) },
  });
}
