import type { Command } from './commands.ts';
import { runCommand } from './run-command.ts';

/**
 * The command line of `npm run measure` and `npm run prove`: without a name it lists what there is; a name runs that,
 * with the words behind it. Answers the exit code: 2 for a name or an option that it does not know.
 */
export async function runNamed(script: 'measure' | 'prove', commands: readonly Command[]): Promise<number> {
  const [name, ...words] = process.argv.slice(2);
  const command = commands.find((each) => each.name === name);
  if (command?.settings !== undefined && words.length > 0) {
    process.stdout.write(`"${name}" takes no options: set ${command.settings} in the environment\n`);
    return 2;
  }
  if (command !== undefined) return runCommand(command, words);
  const isAsked = name === undefined || name === '--list';
  if (!isAsked) process.stdout.write(`there is no ${script} "${name}": it can be one of these\n\n`);
  process.stdout.write(`npm run ${script} -- NAME [OPTION …]\n\n${listOf(commands).join('\n')}\n`);
  return isAsked ? 0 : 2;
}

/** A line for each command: its name, how long it takes, and what it is about. */
export function listOf(commands: readonly Command[]): string[] {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return commands.map(({ name, takes, about }) => `  ${name.padEnd(width)}  ${takes.padStart(6)}  ${about}`);
}
