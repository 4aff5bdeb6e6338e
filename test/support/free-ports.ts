import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';

/**
 * Ports that nobody listens on, as yet. They are below those that the system gives to who asks for any port, and to who
 * connects: between the look and their use nobody is given one by chance.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = new Map<number, Server>();
  for (let tries = 0; servers.size < count; tries++) {
    if (tries > 1_000) throw new Error('no port is free');
    const port = portsFrom + Math.floor(Math.random() * (firstGiven() - portsFrom));
    const server = servers.has(port) ? null : await listening(port);
    if (server !== null) servers.set(port, server);
  }
  await Promise.all([...servers.values()].map((server) => new Promise((closed) => server.close(closed))));
  return [...servers.keys()];
}

/** Below are those of well-known services. */
const portsFrom = 12_000;

function firstGiven(): number {
  try {
    const [first] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/);
    return Math.max(Number(first), portsFrom + 1_000);
  } catch {
    return 32_768;
  }
}

/** Null where the port is taken. */
function listening(port: number): Promise<Server | null> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(null));
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
