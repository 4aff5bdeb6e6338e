import { runNamed } from './command-line.ts';
import { measurements } from './commands.ts';

/** `npm run measure -- NAME`: figures of this machine. Without a name it lists them. */
process.exitCode = await runNamed('measure', measurements);
