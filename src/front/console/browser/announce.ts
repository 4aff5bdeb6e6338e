/**
 * What a screen reader says of a change elsewhere on the page. The region is part of the page from the start: one that came
 * together with its text would not be read.
 */
export function announce(text: string): void {
  const region = document.getElementById('announcements');
  if (region !== null) region.textContent = text;
}
