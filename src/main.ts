#!/usr/bin/env node
/** The `tidebase` command. Each loads what it needs: a supervisor has no use for the server that it starts. */
const usage = `tidebase serve                            start the server (settings are environment variables; see README.md)
tidebase load FOLDER --namespace NAME     send a folder's text files as documents
tidebase import FILE --namespace NAME     import a CSV, NDJSON or Parquet file
tidebase backup --to PLACE                copy the object store as it is at one moment, while servers go on
tidebase restore --from PLACE             put a backup into an empty object store
tidebase cluster                          print the servers that share an object store, and their logs
tidebase mcp                              serve a server's tools to an MCP client that starts programs
                                          (load, import and mcp: --url and --key, or TIDEBASE_URL and TIDEBASE_API_KEY)
`;

async function main(args: readonly string[]): Promise<number> {
  const [command, ...rest] = args;
  switch (command) {
    case 'serve':
      return (await import('./cli/supervise.ts')).supervise();
    // The supervisor's child: the server itself.
    case 'server':
      return (await import('./cli/begin-server.ts')).beginServer(rest);
    case 'load':
      return (await import('./cli/load-folder.ts')).loadFolder(rest, process.env);
    case 'import':
      return (await import('./cli/send-file.ts')).sendFile(rest, process.env);
    case 'backup':
      return (await import('./cli/run-backup.ts')).runBackup(rest, process.env);
    case 'restore':
      return (await import('./cli/run-backup.ts')).runRestore(rest, process.env);
    case 'cluster':
      return (await import('./cli/run-cluster.ts')).runCluster(rest, process.env);
    case 'mcp':
      return (await import('./cli/serve-stdio.ts')).serveStdio(rest, process.env);
    case undefined:
    case 'help':
    case '--help':
      process.stdout.write(usage);
      return 0;
    default:
      process.stderr.write(`tidebase: there is no command "${command}"\n\n${usage}`);
      return 2;
  }
}

process.exitCode = await main(process.argv.slice(2));
