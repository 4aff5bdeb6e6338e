import { runNamed } from './command-line.ts';
import { proofs } from './commands.ts';

/** `npm run prove -- NAME`: long proofs, which the suite takes short turns of. Without a name it lists them. */
process.exitCode = await runNamed('prove', proofs);
