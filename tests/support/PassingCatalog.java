import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.*;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.delta.catalog.DeltaCatalog;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalogue that passes on to Delta's, which it does not extend, but passes on no versions, as Unity Catalog's. */
public class PassingCatalog implements CatalogExtension {
    private final DeltaCatalog delta = new DeltaCatalog();

    public void setDelegateCatalog(CatalogPlugin own) { delta.setDelegateCatalog(own); }

    public void initialize(String name, CaseInsensitiveStringMap options) { delta.initialize(name, options); }

    public String name() { return delta.name(); }

    public String[] defaultNamespace() { return delta.defaultNamespace(); }

    public Table loadTable(Identifier name) throws NoSuchTableException { return delta.loadTable(name); }

    public Table createTable(Identifier name, Column[] columns, Transform[] parts, Map<String, String> properties)
            throws TableAlreadyExistsException, NoSuchNamespaceException {
        return delta.createTable(name, columns, parts, properties);
    }

    public Table alterTable(Identifier name, TableChange... changes) { throw new UnsupportedOperationException(); }

    public boolean dropTable(Identifier name) { return delta.dropTable(name); }

    public void renameTable(Identifier name, Identifier other) { throw new UnsupportedOperationException(); }

    public Identifier[] listTables(String[] names) throws NoSuchNamespaceException { return delta.listTables(names); }

    public String[][] listNamespaces() throws NoSuchNamespaceException { return delta.listNamespaces(); }

    public String[][] listNamespaces(String[] names) throws NoSuchNamespaceException {
        return delta.listNamespaces(names);
    }

    public Map<String, String> loadNamespaceMetadata(String[] names) throws NoSuchNamespaceException {
        return delta.loadNamespaceMetadata(names);
    }

    public void createNamespace(String[] names, Map<String, String> properties) throws NamespaceAlreadyExistsException {
        delta.createNamespace(names, properties);
    }

    public void alterNamespace(String[] names, NamespaceChange... changes) {
        throw new UnsupportedOperationException();
    }

    public boolean dropNamespace(String[] names, boolean cascade)
            throws NoSuchNamespaceException, NonEmptyNamespaceException {
        return delta.dropNamespace(names, cascade);
    }

    public Identifier[] listFunctions(String[] names) throws NoSuchNamespaceException { return new Identifier[0]; }

    public UnboundFunction loadFunction(Identifier name) throws NoSuchFunctionException {
        throw new NoSuchFunctionException(name);
    }
}
