/**
 * The door to TLS. Both sides show by TLS itself that they have the key of the cluster: TLS 1.3 with a pre-shared key and an
 * ephemeral exchange, and without certificates. The identity that crosses the wire in the clear is a digest of the key, so
 * that the present and the previous one are told apart while they are rotated.
 */
import net, { type Socket } from 'node:net';
import tls from 'node:tls';
import { limits } from '../../protocol/limits.ts';
import { type KeyRing, keyName, keysOf } from '../accounts/key-ring.ts';
import type { Clock } from '../base/clock.ts';
import { deriveKey } from '../identity/secrets.ts';
import type { ByteLink, LinkListener } from './byte-link.ts';
import type { DialEvents, DialFailure, PeerTransport, PortEvents } from './transport.ts';

const common = {
  minVersion: 'TLSv1.3',
  maxVersion: 'TLSv1.3',
  // Keys of 256 bits are for SHA-256; with another suite Node finds no key to use.
  ciphers: 'TLS_AES_128_GCM_SHA256',
} as const;

interface SharedKey {
  readonly psk: Uint8Array;
  readonly identity: string;
}

export function tlsTransport(clusterKeys: KeyRing, clock: Clock): PeerTransport {
  const keys = keysOf(clusterKeys).map((key): SharedKey => {
    const psk = deriveKey(key, 'tidebase peers v1');
    return { psk, identity: keyName(psk) };
  });
  return {
    dial: (address, events) => dialWith(keys, 0, address, { events, clock }),
    listen: (address, events) => listenWith(keys, address, { events, clock }),
  };
}

/** Tries one key after the other: while they are rotated, the other side may know the previous one only. */
function dialWith(
  keys: readonly SharedKey[],
  at: number,
  address: { readonly host: string; readonly port: number },
  { events, clock }: { readonly events: DialEvents; readonly clock: Clock },
): () => void {
  const key = keys[at];
  if (key === undefined) {
    events.failed(
      'wrong-key',
      'wrong cluster key: the other server does not know this one’s TIDEBASE_CLUSTER_KEY',
    );
    return () => {};
  }
  let giveUp = () => {
    socket.destroy();
  };
  const socket = tls.connect({
    ...common,
    ...address,
    // Nobody's certificate is good enough: only the key is.
    ca: [],
    checkServerIdentity: () => undefined,
    pskCallback: () => key,
  });
  const fail = (failure: DialFailure, reason: string) => {
    cancelTimer();
    socket.removeAllListeners();
    socket.on('error', ignore);
    socket.destroy();
    if (failure === 'wrong-key') giveUp = dialWith(keys, at + 1, address, { events, clock });
    else events.failed(failure, reason);
  };
  socket.once('secureConnect', () => {
    // With a pre-shared key the handshake counts as resumed; with a certificate it does not.
    if (!socket.isSessionReused()) return fail('unreachable', 'it did not show the key of the cluster');
    socket.removeAllListeners('error');
    socket.removeAllListeners('close');
    cancelTimer();
    events.secured(linkOf(socket, clock));
  });
  const cancelTimer = clock.after(limits.peerHandshakeMs, () =>
    fail('unreachable', 'it did not answer in time'),
  );
  socket.once('close', () => fail('unreachable', 'it closed the connection'));
  socket.once('error', (error: NodeJS.ErrnoException) => fail(failureOf(error), error.message));
  return () => {
    cancelTimer();
    socket.removeAllListeners();
    socket.on('error', ignore);
    giveUp();
  };
}

/**
 * Alerts that a server sends to a client whose key it does not know, or which has another one of that name. OpenSSL 3.5, of Node
 * 24, has other names for them, and another alert for the second.
 */
const wrongKeyCode = /^ERR_SSL_.*_ALERT_(HANDSHAKE_FAILURE|ILLEGAL_PARAMETER|DECRYPT_ERROR)$/;

function failureOf({ code }: NodeJS.ErrnoException): DialFailure {
  if (code === 'ECONNREFUSED') return 'refused';
  return code !== undefined && wrongKeyCode.test(code) ? 'wrong-key' : 'unreachable';
}

async function listenWith(
  keys: readonly SharedKey[],
  address: { readonly host: string; readonly port: number },
  { events, clock }: { readonly events: PortEvents; readonly clock: Clock },
): Promise<{ readonly port: number; close(): void }> {
  const strangers = new Set<Socket>();
  const wrongKeys = new WeakSet<Socket>();
  const secure = tls.createServer({
    ...common,
    handshakeTimeout: limits.peerHandshakeMs,
    pskCallback(socket, identity) {
      const key = keys.find((known) => known.identity === identity);
      if (key === undefined) wrongKeys.add(socket);
      return key?.psk ?? null;
    },
  });
  // In a server of its own, since a connection that TLS has wrapped can't be closed from outside.
  const server = net.createServer((socket) => {
    if (strangers.size >= limits.peerHandshakesAtOnceMax) {
      events.stranger('too-many', socket.remoteAddress ?? '');
      socket.on('error', ignore);
      socket.destroy();
      return;
    }
    strangers.add(socket);
    socket.once('close', () => strangers.delete(socket));
    secure.emit('connection', socket);
  });
  secure.on('secureConnection', (socket) => {
    // TLS wraps the connection that was counted: they have the same port at the other end.
    for (const stranger of strangers) if (isSame(stranger, socket)) strangers.delete(stranger);
    events.accepted(linkOf(socket, clock), socket.remoteAddress ?? '');
  });
  secure.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
    const isWrong = wrongKeys.has(socket) || error.code === 'ERR_SSL_BINDER_DOES_NOT_VERIFY';
    events.stranger(isWrong ? 'wrong-key' : 'no-peer', socket.remoteAddress ?? '');
    socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const bound = server.address();
  return {
    port: bound !== null && typeof bound === 'object' ? bound.port : address.port,
    close() {
      server.close();
      for (const stranger of strangers) stranger.destroy();
    },
  };
}

function isSame(one: Socket, other: Socket): boolean {
  return one.remotePort === other.remotePort && one.remoteAddress === other.remoteAddress;
}

function linkOf(socket: tls.TLSSocket, clock: Clock): ByteLink {
  socket.setNoDelay(true);
  // What follows an error is 'close', which is all that counts.
  socket.on('error', ignore);
  return {
    write: (bytes) => socket.write(bytes),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    end() {
      socket.end();
      // Who does not read what was written is not waited for.
      const cancel = clock.after(limits.peerHandshakeMs, () => socket.destroy());
      socket.once('close', cancel);
    },
    destroy: () => void socket.destroy(),
    listen({ received, drained, closed }: LinkListener) {
      socket.on('data', received);
      socket.on('drain', drained);
      socket.once('close', closed);
    },
  };
}

function ignore(): void {}
