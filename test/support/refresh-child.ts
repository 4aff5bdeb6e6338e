/** A process of an MCP client: it refreshes when it is told to, and prints the answer. Arguments: server, client, refresh token. */
import { refreshTokens } from './oauth-flow.ts';

const [url = '', clientId = '', token = ''] = process.argv.slice(2);
process.stdout.write('ready\n');
process.stdin.once('data', () => {
  refreshTokens(url, clientId, token).then(({ status, text }) => {
    process.stdout.write(`${JSON.stringify({ status, text })}\n`);
    process.stdin.destroy();
  });
});
