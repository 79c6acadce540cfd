# A BI client: LibreOffice, driven through UNO. What to do comes as JSON on standard input, as everyone on the machine can
# read a password on a command line; what the client saw goes as JSON to standard output.

import json
import os
import signal
import sys
import tempfile

import uno
from com.sun.star.awt import Rectangle
from com.sun.star.beans import PropertyValue
from com.sun.star.sdbc import SQLException
from com.sun.star.sheet.DataImportMode import TABLE
from com.sun.star.sheet.DataPilotFieldOrientation import COLUMN, DATA, ROW
from com.sun.star.sheet.GeneralFunction import SUM
from com.sun.star.table import CellAddress
from office import connect, end_office, service, start_office

# Everybody may read these.
SYSTEM_SCHEMAS = ("information_schema", "pg_catalog")
# In hundredths of a millimetre.
CHART = Rectangle(X=0, Y=6000, Width=16000, Height=9000)


def main():
    # As an exception, so that the office does not outlive this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    task = json.load(sys.stdin)
    pipe = f"usage-export-{os.urandom(8).hex()}"
    with tempfile.TemporaryDirectory(prefix="usage-export-office-") as folder:
        office = start_office(folder, pipe)
        try:
            seen = work(connect(office, pipe), folder, task)
        finally:
            end_office(office, pipe)
    json.dump(seen, sys.stdout)


def work(context, folder, task):
    user, password = task["connection"]["user"], task["connection"]["password"]
    source = register_source(context, folder, task["connection"])
    connection = source.getConnection(user, password)
    listed = list_tables(connection)
    seen = {
        "listed": listed,
        "readable": [name for name in listed if refusal(connection, f"select * from {name} limit 1") is None],
        "refusals": [refusal(connection, statement) for statement in task["statements"]],
        "descriptions": describe_columns(connection, task["view"]),
    }
    connection.close()

    desktop = service(context, "com.sun.star.frame.Desktop")
    document = desktop.loadComponentFromURL("private:factory/scalc", "_blank", 0, properties(Hidden=True))
    cells = import_view(document, source.DatabaseDocument.URL, task["view"])
    seen["cells"] = cells.getDataArray()
    seen["pivots"] = {metric: add_pivot(document, cells, task, metric) for metric in task["metrics"]}
    document.storeToURL(uno.systemPathToFileUrl(task["file"]), properties(FilterName="calc8"))
    document.close(True)
    return seen


def register_source(context, folder, connection):
    """A sheet imports from a saved data source; its password is set after that, and stays in the office's memory."""
    source = service(context, "com.sun.star.sdb.DatabaseContext").createInstance()
    source.URL = "sdbc:postgresql:host={host} port={port} dbname={database}".format(**connection)
    source.User = connection["user"]
    source.IsPasswordRequired = True
    source.DatabaseDocument.storeAsURL(uno.systemPathToFileUrl(os.path.join(folder, "source.odb")), ())
    source.Password = connection["password"]
    return source


def list_tables(connection):
    found = connection.getMetaData().getTables(None, "%", "%", ())
    tables = []
    while found.next():
        schema, name = found.getString(2), found.getString(3)
        if schema not in SYSTEM_SCHEMAS:
            tables.append(f"{schema}.{name}")
    return tables


def describe_columns(connection, view):
    schema, name = view.split(".")
    found = connection.getMetaData().getColumns(None, schema, name, "%")
    descriptions = {}
    while found.next():
        # By JDBC's numbering: the column's name, and its remarks.
        descriptions[found.getString(4)] = found.getString(12)
    return descriptions


def refusal(connection, statement):
    """The database's reason, or None where it did what it was told."""
    try:
        connection.createStatement().execute(statement)
        return None
    except SQLException as error:
        return error.Message


def import_view(document, source, view):
    """As a person does who drags a view from the data sources into a sheet."""
    sheet = document.Sheets.getByIndex(0)
    sheet.Name = view
    sheet.getCellByPosition(0, 0).doImport(properties(DatabaseName=source, SourceType=TABLE, SourceObject=view))
    return used_cells(sheet)


def add_pivot(document, source, task, metric):
    """On a sheet of its own, with a chart. Returns the grand total, and what all points of the chart add up to."""
    position = document.Sheets.Count
    document.Sheets.insertNewByName(metric, position)
    sheet = document.Sheets.getByIndex(position)
    pivots = sheet.getDataPilotTables()
    pivot = pivots.createDataPilotDescriptor()
    pivot.setSourceRange(source.getRangeAddress())
    fields = pivot.getDataPilotFields()
    fields.getByName(task["rows"]).Orientation = ROW
    fields.getByName(task["columns"]).Orientation = COLUMN
    fields.getByName(metric).Orientation = DATA
    fields.getByName(metric).Function = SUM
    pivots.insertNewByName(metric, CellAddress(Sheet=position, Column=0, Row=0), pivot)

    charts = sheet.getPivotCharts()
    charts.addNewByName(metric, CHART, metric)
    chart = charts.getByName(metric).getEmbeddedObject()
    chart.HasLegend = True
    chart.getDiagram().Stacked = True
    points = [point for series in chart.getData().getData() for point in series]
    return {"total": used_cells(sheet).getDataArray()[-1][-1], "charted": sum(points)}


def used_cells(sheet):
    cursor = sheet.createCursor()
    cursor.gotoStartOfUsedArea(False)
    cursor.gotoEndOfUsedArea(True)
    return cursor


def properties(**values):
    return tuple(PropertyValue(Name=name, Value=value) for name, value in values.items())


main()
