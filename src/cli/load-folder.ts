export async function loadFolder(_args: readonly string[], _env: Readonly<Record<string, string | undefined>>): Promise<number> {
  process.stderr.write('tidebase load is not built yet\n');
  return 2;
}
