/** Runs the program that is its argument, as `npm run measure` does. Its tests end it in every way. */
import { runCommand } from '../../load-tests/run-command.ts';

const [source = ''] = process.argv.slice(2);
const command = { name: 'test', about: '', takes: '', steps: [{ program: ['-e', source] }] };
process.exitCode = await runCommand(command, []);
