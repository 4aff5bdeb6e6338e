/**
 * Questions of the shapes that the public web-analytics benchmark asks, 43 of them, in our own words. `theirs` where DuckDB says it
 * another way. Orders are total, so that there is one right answer.
 */
export interface WebQuery {
  readonly ours: string;
  readonly theirs?: string;
}

const july = "CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31'";
const host = "REGEXP_REPLACE(Referer, '^https?://(?:www\\.)?([^/]+)/.*$', '\\1')";
const hostOfDuckDb = "regexp_replace(Referer, '^https?://(?:www\\.)?([^/]+)/.*$', '\\1', 'g')";

export const webQueries: readonly WebQuery[] = [
  { ours: 'SELECT COUNT(*) FROM docs' },
  { ours: 'SELECT COUNT(*) FROM docs WHERE AdvEngineID <> 0' },
  { ours: 'SELECT SUM(AdvEngineID), COUNT(*), AVG(ResolutionWidth) FROM docs' },
  { ours: 'SELECT AVG(UserID) FROM docs' },
  { ours: 'SELECT COUNT(DISTINCT UserID) FROM docs' },
  { ours: 'SELECT COUNT(DISTINCT SearchPhrase) FROM docs' },
  { ours: 'SELECT MIN(EventDate), MAX(EventDate) FROM docs' },
  {
    ours: 'SELECT AdvEngineID, COUNT(*) FROM docs WHERE AdvEngineID <> 0 GROUP BY AdvEngineID ORDER BY COUNT(*) DESC, AdvEngineID',
  },
  {
    ours: 'SELECT RegionID, COUNT(DISTINCT UserID) AS u FROM docs GROUP BY RegionID ORDER BY u DESC, RegionID LIMIT 10',
  },
  {
    ours: 'SELECT RegionID, SUM(AdvEngineID), COUNT(*) AS c, AVG(ResolutionWidth), COUNT(DISTINCT UserID) FROM docs GROUP BY RegionID ORDER BY c DESC, RegionID LIMIT 10',
  },
  {
    ours: "SELECT MobilePhoneModel, COUNT(DISTINCT UserID) AS u FROM docs WHERE MobilePhoneModel <> '' GROUP BY MobilePhoneModel ORDER BY u DESC, MobilePhoneModel LIMIT 10",
  },
  {
    ours: "SELECT MobilePhone, MobilePhoneModel, COUNT(DISTINCT UserID) AS u FROM docs WHERE MobilePhoneModel <> '' GROUP BY MobilePhone, MobilePhoneModel ORDER BY u DESC, MobilePhone, MobilePhoneModel LIMIT 10",
  },
  {
    ours: "SELECT SearchPhrase, COUNT(*) AS c FROM docs WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC, SearchPhrase LIMIT 10",
  },
  {
    ours: "SELECT SearchPhrase, COUNT(DISTINCT UserID) AS u FROM docs WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY u DESC, SearchPhrase LIMIT 10",
  },
  {
    ours: "SELECT SearchEngineID, SearchPhrase, COUNT(*) AS c FROM docs WHERE SearchPhrase <> '' GROUP BY SearchEngineID, SearchPhrase ORDER BY c DESC, SearchEngineID, SearchPhrase LIMIT 10",
  },
  { ours: 'SELECT UserID, COUNT(*) FROM docs GROUP BY UserID ORDER BY COUNT(*) DESC, UserID LIMIT 10' },
  {
    ours: 'SELECT UserID, SearchPhrase, COUNT(*) FROM docs GROUP BY UserID, SearchPhrase ORDER BY COUNT(*) DESC, UserID, SearchPhrase LIMIT 10',
  },
  {
    // Any ten would do: their counts are compared.
    ours: 'SELECT COUNT(*) FROM docs GROUP BY UserID, SearchPhrase ORDER BY COUNT(*) DESC LIMIT 10',
  },
  {
    ours: 'SELECT UserID, EXTRACT(MINUTE FROM EventTime) AS m, SearchPhrase, COUNT(*) FROM docs GROUP BY UserID, m, SearchPhrase ORDER BY COUNT(*) DESC, UserID, m, SearchPhrase LIMIT 10',
  },
  { ours: 'SELECT UserID FROM docs WHERE UserID = 435090932899640449' },
  { ours: "SELECT COUNT(*) FROM docs WHERE URL LIKE '%google%'" },
  {
    ours: "SELECT SearchPhrase, MIN(URL), COUNT(*) AS c FROM docs WHERE URL LIKE '%google%' AND SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC, SearchPhrase LIMIT 10",
  },
  {
    ours: "SELECT SearchPhrase, MIN(URL), MIN(Title), COUNT(*) AS c, COUNT(DISTINCT UserID) FROM docs WHERE Title LIKE '%Google%' AND URL NOT LIKE '%news.%' AND SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC, SearchPhrase LIMIT 10",
  },
  {
    ours: "SELECT WatchID, EventTime, CounterID, URL, Title, UserID, RegionID FROM docs WHERE URL LIKE '%google%' ORDER BY EventTime, WatchID LIMIT 10",
  },
  {
    ours: "SELECT SearchPhrase FROM docs WHERE SearchPhrase <> '' ORDER BY EventTime, SearchPhrase LIMIT 10",
  },
  { ours: "SELECT SearchPhrase FROM docs WHERE SearchPhrase <> '' ORDER BY SearchPhrase LIMIT 10" },
  {
    ours: "SELECT SearchPhrase FROM docs WHERE SearchPhrase <> '' ORDER BY EventTime, SearchPhrase LIMIT 10 OFFSET 100",
  },
  {
    ours: "SELECT CounterID, AVG(LENGTH(URL)) AS l, COUNT(*) AS c FROM docs WHERE URL <> '' GROUP BY CounterID HAVING COUNT(*) > 5000 ORDER BY l DESC, CounterID LIMIT 25",
    theirs:
      "SELECT CounterID, AVG(strlen(URL)) AS l, COUNT(*) AS c FROM docs WHERE URL <> '' GROUP BY CounterID HAVING COUNT(*) > 5000 ORDER BY l DESC, CounterID LIMIT 25",
  },
  {
    ours: `SELECT ${host} AS k, AVG(LENGTH(Referer)) AS l, COUNT(*) AS c, MIN(Referer) FROM docs WHERE Referer <> '' GROUP BY k HAVING COUNT(*) > 5000 ORDER BY l DESC, k LIMIT 25`,
    theirs: `SELECT ${hostOfDuckDb} AS k, AVG(strlen(Referer)) AS l, COUNT(*) AS c, MIN(Referer) FROM docs WHERE Referer <> '' GROUP BY k HAVING COUNT(*) > 5000 ORDER BY l DESC, k LIMIT 25`,
  },
  {
    ours: `SELECT ${Array.from({ length: 90 }, (_, at) => `SUM(ResolutionWidth + ${at})`).join(', ')} FROM docs`,
  },
  {
    ours: "SELECT SearchEngineID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth) FROM docs WHERE SearchPhrase <> '' GROUP BY SearchEngineID, ClientIP ORDER BY c DESC, SearchEngineID, ClientIP LIMIT 10",
  },
  {
    ours: "SELECT WatchID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth) FROM docs WHERE SearchPhrase <> '' GROUP BY WatchID, ClientIP ORDER BY c DESC, WatchID, ClientIP LIMIT 10",
  },
  {
    ours: 'SELECT WatchID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth) FROM docs GROUP BY WatchID, ClientIP ORDER BY c DESC, WatchID, ClientIP LIMIT 10',
  },
  { ours: 'SELECT URL, COUNT(*) AS c FROM docs GROUP BY URL ORDER BY c DESC, URL LIMIT 10' },
  { ours: 'SELECT 1 AS one, URL, COUNT(*) AS c FROM docs GROUP BY one, URL ORDER BY c DESC, URL LIMIT 10' },
  {
    ours: 'SELECT ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3, COUNT(*) AS c FROM docs GROUP BY ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3 ORDER BY c DESC, ClientIP LIMIT 10',
  },
  {
    ours: `SELECT URL, COUNT(*) AS views FROM docs WHERE ${july} AND DontCountHits = 0 AND IsRefresh = 0 AND URL <> '' GROUP BY URL ORDER BY views DESC, URL LIMIT 10`,
  },
  {
    ours: `SELECT Title, COUNT(*) AS views FROM docs WHERE ${july} AND DontCountHits = 0 AND IsRefresh = 0 AND Title <> '' GROUP BY Title ORDER BY views DESC, Title LIMIT 10`,
  },
  {
    ours: `SELECT URL, COUNT(*) AS views FROM docs WHERE ${july} AND IsRefresh = 0 AND IsLink <> 0 AND IsDownload = 0 GROUP BY URL ORDER BY views DESC, URL LIMIT 10 OFFSET 100`,
  },
  {
    ours: `SELECT TraficSourceID, SearchEngineID, AdvEngineID, CASE WHEN SearchEngineID = 0 AND AdvEngineID = 0 THEN Referer ELSE '' END AS src, URL AS dst, COUNT(*) AS views FROM docs WHERE ${july} AND IsRefresh = 0 GROUP BY TraficSourceID, SearchEngineID, AdvEngineID, src, dst ORDER BY views DESC, TraficSourceID, SearchEngineID, AdvEngineID, src, dst LIMIT 10 OFFSET 100`,
  },
  {
    ours: `SELECT URLHash, EventDate, COUNT(*) AS views FROM docs WHERE ${july} AND IsRefresh = 0 AND TraficSourceID IN (-1, 6) AND RefererHash > 3594120000172545465 GROUP BY URLHash, EventDate ORDER BY views DESC, URLHash, EventDate LIMIT 10 OFFSET 10`,
  },
  {
    ours: `SELECT WindowClientWidth, WindowClientHeight, COUNT(*) AS views FROM docs WHERE ${july} AND IsRefresh = 0 AND DontCountHits = 0 AND URLHash < 2868770270353813622 GROUP BY WindowClientWidth, WindowClientHeight ORDER BY views DESC, WindowClientWidth, WindowClientHeight LIMIT 10 OFFSET 100`,
  },
  {
    ours: "SELECT DATE_TRUNC('minute', EventTime) AS m, COUNT(*) AS views FROM docs WHERE CounterID = 62 AND EventDate >= '2013-07-14' AND EventDate <= '2013-07-15' AND IsRefresh = 0 AND DontCountHits = 0 GROUP BY m ORDER BY m LIMIT 10 OFFSET 100",
    theirs:
      "SELECT strftime(DATE_TRUNC('minute', EventTime), '%Y-%m-%d %H:%M:%S') AS m, COUNT(*) AS views FROM docs WHERE CounterID = 62 AND EventDate >= '2013-07-14' AND EventDate <= '2013-07-15' AND IsRefresh = 0 AND DontCountHits = 0 GROUP BY m ORDER BY m LIMIT 10 OFFSET 100",
  },
];
