/**
 * A table of page views in the shape of the public ClickBench one: its 105 columns, filled by DuckDB from hashes of the row's number.
 * Distributions are those of such logs: a few counters, regions, users and pages have most of the rows, most texts are empty, ids
 * are beyond 2^53, and rows lie in the order of counter and day.
 */
interface Column {
  readonly name: string;
  readonly type: string;
  /** SQL over `i`, the row's number. */
  readonly values: string;
}

/** A number under `bound`, another one for each `salt`. */
const any = (salt: number, bound: number) => `(hash(i * 1000003 + ${salt}) % ${bound})`;
/** As `any`, small numbers far more often than large ones. */
const skewed = (salt: number, bound: number, power = 3) =>
  `floor(pow(${any(salt, 1_000_000)} / 1000000.0, ${power}) * ${bound})`;
const wide = (salt: number) => `(hash(i * 1000003 + ${salt}) // 2)`;
/** A text for one row in so many, else none. */
const seldom = (salt: number, oneIn: number, text: string) =>
  `CASE WHEN ${any(salt, oneIn)} = 0 THEN ${text} ELSE '' END`;
const oneOf = (salt: number, texts: readonly string[], power = 2) =>
  `[${texts.map((text) => `'${text}'`).join(', ')}][(1 + ${skewed(salt, texts.length, power)})::BIGINT]`;

const small = (name: string, salt: number, bound: number, power = 3): Column => ({
  name,
  type: 'SMALLINT',
  values: skewed(salt, bound, power),
});
const whole = (name: string, salt: number, bound: number, power = 3): Column => ({
  name,
  type: 'INTEGER',
  values: skewed(salt, bound, power),
});
const text = (name: string, values: string): Column => ({ name, type: 'TEXT', values });
const empty = (name: string, salt: number, oneIn: number) =>
  text(name, seldom(salt, oneIn, `'${name.toLowerCase()}-' || ${skewed(salt + 500, 40)}::INT`));

const hosts = [
  'tides.example',
  'www.harbour.example',
  'news.example.net',
  'shop.example.org',
  'maps.example',
  'mail.example',
];
const words = [
  'tide',
  'table',
  'harbour',
  'moon',
  'spring',
  'ferry',
  'boat',
  'map',
  'weather',
  'low',
  'high',
  'water',
];
const word = (salt: number) => oneOf(salt, words, 1.5);
/** A page of many: a few have most of the rows. */
const page = (salt: number) => `${skewed(salt, 250_000, 3)}::BIGINT`;
const ofPage = (salt: number, factor: number, texts: readonly string[]) =>
  `[${texts.map((each) => `'${each}'`).join(', ')}][(1 + ${page(salt)} * ${factor} % ${texts.length})::BIGINT]`;
const url = (salt: number) =>
  `'http://' || ${ofPage(salt, 7, hosts)} || '/' || ${ofPage(salt, 5, words)} || '/' || ${ofPage(salt, 11, words)} || '?id=' || ${page(salt)} ||
   CASE WHEN ${any(salt + 4, 40)} = 0 THEN '&from=google' ELSE '' END`;
const hashOf = (salt: number) => `(hash(${url(salt)}) // 2)`;
const seconds = `(${any(7, 86_400)})::INT`;
const day = `(DATE '2013-07-01' + (${skewed(6, 31, 1)})::INT)`;

export const hitColumns: readonly Column[] = [
  { name: 'WatchID', type: 'BIGINT', values: wide(1) },
  small('JavaEnable', 2, 2, 0.5),
  text(
    'Title',
    `CASE WHEN ${any(3, 7)} = 0 THEN '' ELSE ${ofPage(1_500, 5, words)} || ' ' || ${ofPage(1_500, 11, words)} || ' - ' || ${page(1_500)} || CASE WHEN ${any(34, 60)} = 0 THEN ' Google' ELSE '' END END`,
  ),
  small('GoodEvent', 4, 1),
  { name: 'EventTime', type: 'TIMESTAMP', values: `${day}::TIMESTAMP + to_seconds(${seconds})` },
  { name: 'EventDate', type: 'DATE', values: day },
  { name: 'CounterID', type: 'INTEGER', values: `62 + ${skewed(8, 3_000, 4)}` },
  { name: 'ClientIP', type: 'INTEGER', values: `${any(9, 400_000)}::BIGINT * 5000 - 1000000000` },
  whole('RegionID', 10, 5_000, 4),
  { name: 'UserID', type: 'BIGINT', values: `(hash(${skewed(11, 170_000, 2)}) // 2)` },
  small('CounterClass', 12, 3, 1),
  small('OS', 13, 100, 3),
  small('UserAgent', 14, 80, 3),
  text('URL', url(1_500)),
  text('Referer', `CASE WHEN ${any(16, 3)} = 0 THEN '' ELSE ${url(1_600)} END`),
  { name: 'IsRefresh', type: 'SMALLINT', values: `(${any(17, 8)} = 0)::INT` },
  small('RefererCategoryID', 18, 60),
  whole('RefererRegionID', 19, 3_000),
  small('URLCategoryID', 20, 60),
  whole('URLRegionID', 21, 3_000),
  {
    name: 'ResolutionWidth',
    type: 'SMALLINT',
    values: `[1366, 1920, 1280, 1024, 1600, 1440, 800][(1 + ${skewed(22, 7, 1.5)})::BIGINT]`,
  },
  {
    name: 'ResolutionHeight',
    type: 'SMALLINT',
    values: `[768, 1080, 800, 900, 1050, 600][(1 + ${skewed(23, 6, 1.5)})::BIGINT]`,
  },
  small('ResolutionDepth', 24, 33, 1),
  small('FlashMajor', 25, 12, 2),
  small('FlashMinor', 26, 8),
  empty('FlashMinor2', 27, 6),
  small('NetMajor', 28, 5),
  small('NetMinor', 29, 5),
  small('UserAgentMajor', 30, 40, 2),
  { name: 'UserAgentMinor', type: 'VARCHAR(255)', values: seldom(35, 2, `${skewed(36, 30)}::INT::VARCHAR`) },
  small('CookieEnable', 37, 2, 0.2),
  small('JavascriptEnable', 38, 2, 0.2),
  { name: 'IsMobile', type: 'SMALLINT', values: `(${any(39, 12)} = 0)::INT` },
  small('MobilePhone', 40, 120, 8),
  text(
    'MobilePhoneModel',
    seldom(41, 18, oneOf(42, ['iPad', 'iPhone', 'Nexus 5', 'Lumia', 'Galaxy', 'Xperia'])),
  ),
  empty('Params', 43, 15),
  whole('IPNetworkID', 44, 100_000, 2),
  { name: 'TraficSourceID', type: 'SMALLINT', values: `${skewed(45, 10, 2)} - 1` },
  small('SearchEngineID', 46, 70, 10),
  text(
    'SearchPhrase',
    seldom(47, 8, `${word(48)} || ' ' || ${word(49)} || ' ' || ${skewed(50, 8_000, 2)}::INT`),
  ),
  {
    name: 'AdvEngineID',
    type: 'SMALLINT',
    values: `CASE WHEN ${any(51, 60)} = 0 THEN 1 + ${skewed(52, 40)} ELSE 0 END`,
  },
  small('IsArtifical', 53, 2, 8),
  small('WindowClientWidth', 54, 1_900, 1),
  small('WindowClientHeight', 55, 1_000, 1),
  { name: 'ClientTimeZone', type: 'SMALLINT', values: `${skewed(56, 24, 1)} * 60 - 720` },
  {
    name: 'ClientEventTime',
    type: 'TIMESTAMP',
    values: `${day}::TIMESTAMP + to_seconds((${seconds} + ${any(57, 3_600)})::INT)`,
  },
  small('SilverlightVersion1', 58, 6),
  small('SilverlightVersion2', 59, 2, 8),
  whole('SilverlightVersion3', 60, 60_000, 6),
  small('SilverlightVersion4', 61, 2, 8),
  text('PageCharset', oneOf(62, ['windows-1251', 'utf-8', 'koi8-r', ''])),
  whole('CodeVersion', 63, 2_000, 2),
  small('IsLink', 64, 2, 6),
  small('IsDownload', 65, 2, 9),
  small('IsNotBounce', 66, 2, 3),
  { name: 'FUniqID', type: 'BIGINT', values: wide(67) },
  text('OriginalURL', seldom(68, 12, url(1_700))),
  { name: 'HID', type: 'INTEGER', values: any(69, 1_073_741_824) },
  ...['IsOldCounter', 'IsEvent', 'IsParameter', 'DontCountHits', 'WithHash'].map((name, at) =>
    small(name, 70 + at, 2, 7),
  ),
  { name: 'HitColor', type: 'CHAR', values: oneOf(75, ['E', 'D', 'S']) },
  {
    name: 'LocalEventTime',
    type: 'TIMESTAMP',
    values: `${day}::TIMESTAMP + to_seconds((${seconds} + 3600)::INT)`,
  },
  small('Age', 76, 6),
  small('Sex', 77, 3),
  small('Income', 78, 5),
  small('Interests', 79, 30_000, 4),
  small('Robotness', 80, 40, 9),
  { name: 'RemoteIP', type: 'INTEGER', values: `${any(81, 400_000)}::BIGINT * 5000 - 1000000000` },
  whole('WindowName', 82, 10_000, 2),
  whole('OpenerName', 83, 10_000, 4),
  small('HistoryLength', 84, 60, 4),
  text('BrowserLanguage', oneOf(85, ['S0', 's1', 'en', 'de'])),
  text('BrowserCountry', oneOf(86, ['ru', 'de', 'fr', 'us', 'h1'])),
  empty('SocialNetwork', 87, 900),
  empty('SocialAction', 88, 900),
  small('HTTPError', 89, 500, 30),
  ...[
    'SendTiming',
    'DNSTiming',
    'ConnectTiming',
    'ResponseStartTiming',
    'ResponseEndTiming',
    'FetchTiming',
  ].map((name, at) => whole(name, 90 + at, 4_000, 5)),
  small('SocialSourceNetworkID', 96, 20, 12),
  empty('SocialSourcePage', 97, 600),
  { name: 'ParamPrice', type: 'BIGINT', values: skewed(98, 100_000, 12) },
  empty('ParamOrderID', 99, 500),
  text('ParamCurrency', oneOf(100, ['', 'USD', 'EUR'], 6)),
  small('ParamCurrencyID', 101, 3, 8),
  empty('OpenstatServiceName', 102, 200),
  empty('OpenstatCampaignID', 103, 200),
  empty('OpenstatAdID', 104, 200),
  empty('OpenstatSourceID', 105, 200),
  ...['UTMSource', 'UTMMedium', 'UTMCampaign', 'UTMContent', 'UTMTerm', 'FromTag'].map((name, at) =>
    empty(name, 106 + at, 40),
  ),
  small('HasGCLID', 113, 2, 8),
  { name: 'RefererHash', type: 'BIGINT', values: hashOf(1_600) },
  { name: 'URLHash', type: 'BIGINT', values: hashOf(1_500) },
  whole('CLID', 115, 10_000, 20),
];

/** As an import's `schema`. */
export const hitsDefinition = `CREATE TABLE hits (\n${hitColumns
  .map(({ name, type }) => `  ${name} ${type} NOT NULL`)
  .join(',\n')},\n  PRIMARY KEY (CounterID, EventDate, UserID, EventTime, WatchID)\n)`;

/** Makes DuckDB's table `made` of so many rows. */
export function hitsTable(rows: number): string {
  const values = hitColumns.map(
    ({ name, type, values: expression }) => `(${expression})::${type} AS ${name}`,
  );
  return `CREATE TABLE made AS SELECT ${values.join(',\n')} FROM range(${rows}) numbers(i) ORDER BY CounterID, EventDate, UserID`;
}
