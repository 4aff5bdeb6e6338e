import { loadTests } from './commands.ts';
import { runCommand } from './run-command.ts';

/** `npm run load -- NAME`: scenarios of load, and one page of their results. Without a name it lists them. */
process.exitCode = await runCommand(loadTests, process.argv.slice(2));
