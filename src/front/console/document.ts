import type { Assets } from './assets.ts';

/** What the pages say of the server that serves them. */
export interface ServerFacts {
  /** The folder in which a server without a mail server puts its mails, as words for a person; null where it sends them. */
  readonly mailFiles: string | null;
}

/**
 * Makes the one document behind every page: the frame that the browser's modules fill. All of them are named, so that the
 * browser asks for them at once and not as each import is met.
 */
export function pageDocument({ digest, files }: Assets, { mailFiles }: ServerFacts): string {
  const at = (name: string) => `${assetsPath(digest)}${name}`;
  const preloads = files
    .filter(({ name }) => name.endsWith('.js') && name !== 'main.js')
    .map(({ name }) => `<link rel="modulepreload" href="${at(name)}">`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="Tidebase: a search database over plain object storage.">
${mailFiles === null ? '' : `<meta name="tidebase-mail-files" content="${escapedAttribute(mailFiles)}">\n`}<title>Tidebase</title>
<link rel="icon" href="${at('icon.svg')}" type="image/svg+xml">
<link rel="stylesheet" href="${at('console.css')}">
<script type="module" src="${at('main.js')}"></script>
${preloads.join('\n')}
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<div id="page"><noscript><main><h1>Tidebase</h1><p>These pages need JavaScript. The interface that they call does not: see <a href="/openapi.json">openapi.json</a>.</p></main></noscript></div>
<div id="announcements" class="hidden" role="status" aria-live="polite"></div>
</body>
</html>
`;
}

export const assetsFolder = '/console/assets/';

export function assetsPath(digest: string): string {
  return `${assetsFolder}${digest}/`;
}

function escapedAttribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
